package queueserver_test

import (
	"slices"
	"testing"
)

func TestReleaseShowsWhatWasReceivedAndNotDeleted(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=600")
		h.send(queue, "", "deleted", "received", "waiting")
		h.sendDelayed(queue, "delayed", 60)
		first := h.receive(queue, 2, 0)
		h.delete(queue, first[0])
		released, err := h.server.Release(queue)
		if err != nil || released != 1 {
			t.Fatalf("released %d, %v; want 1", released, err)
		}
		got := bodies(h.receive(queue, 10, 0))
		slices.Sort(got)
		if !slices.Equal(got, []string{"received", "waiting"}) {
			t.Errorf("receivable: got %v, want [received waiting]", got)
		}
		if _, err := h.server.Release(queue + "x"); err == nil {
			t.Error("an unknown queue: want an error")
		}
	})
}
