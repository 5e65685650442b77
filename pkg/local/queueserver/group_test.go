package queueserver

import (
	"fmt"
	"slices"
	"testing"
)

func TestQuietGroupIsServedBeforeTheBacklogOfANoisyOne(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	h.send(queue, "noisy", numbered("n", 200)...)
	for range 5 {
		h.receive(queue, 10, 0)
	}
	h.send(queue, "quiet", numbered("q", 3)...)
	got := bodies(h.receive(queue, 10, 0))
	if want := []string{"q0", "q1", "q2"}; !slices.Equal(got[:3], want) || len(got) != 10 {
		t.Errorf("got %v, want %v first and the noisy group in the rest", got, want)
	}
}

// Messages that are done at once leave no group with any in flight.
func TestQuietGroupDoesNotWaitForATurnOfEachGroupWithABacklog(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	for n := range 50 {
		h.send(queue, fmt.Sprint("noisy", n), numbered("n", 20)...)
	}
	for range 5 {
		for _, m := range h.receive(queue, 10, 0) {
			h.delete(queue, m)
		}
		h.send(queue, "quiet", "quiet")
		got := h.receive(queue, 10, 0)
		if all := bodies(got); !slices.Contains(all, "quiet") || len(all) != 10 {
			t.Fatalf("got %v, want the quiet group's message among ten", all)
		}
		for _, m := range got {
			h.delete(queue, m)
		}
	}
}

// A group whose messages take long must not get the consumers that become free, only its share of them.
func TestSlowGroupKeepsOnlyItsShareOfTheConsumers(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	h.send(queue, "slow", numbered("s", 100)...)
	h.send(queue, "fast", numbered("f", 100)...)
	const consumers, rounds = 10, 10
	slow, fast := 0, 0
	for range rounds { // the fast messages finish within their round, the slow ones never
		for _, m := range h.receive(queue, int32(consumers-slow), 0) {
			if m.Attributes["MessageGroupId"] == "slow" {
				slow++
				continue
			}
			fast++
			h.delete(queue, m)
		}
	}
	if slow != consumers/2 || fast != rounds*consumers/2 {
		t.Errorf("slow messages hold %d of %d consumers, %d fast ones were served; want %d and %d",
			slow, consumers, fast, consumers/2, rounds*consumers/2)
	}
}

func TestMessageThatComesBackWaitsBehindItsGroup(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	h.send(queue, "g", "a", "b", "c")
	if err := h.changeVisibility(queue, h.receive(queue, 1, 0)[0], 0); err != nil {
		t.Fatal(err)
	}
	if got, want := bodies(h.receive(queue, 10, 0)), []string{"b", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
