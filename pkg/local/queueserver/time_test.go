package queueserver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// bubble runs a test in a bubble of its own: the server's time passes only while everything waits.
func bubble(t *testing.T, config *Config, test func(t *testing.T, h *harness)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, inBubble(t, dir, config)) })
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// elapsed returns how long f took, to the millisecond.
func elapsed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start).Round(time.Millisecond)
}

func TestReceivedMessageIsHiddenForItsTimeout(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=5")
		h.send(queue, "", "m")
		first := h.receive(queue, 1, 0)[0]
		h.wantCounts(queue, "0/1/0")
		var again []types.Message
		if d := elapsed(func() { again = h.receive(queue, 1, 20) }); d != 5*time.Second || len(again) != 1 {
			t.Fatalf("came back after %v (%d messages), want 5s", d, len(again))
		}
		if n := again[0].Attributes["ApproximateReceiveCount"]; n != "2" {
			t.Errorf("receive count: got %s, want 2", n)
		}
		if again[0].Attributes["ApproximateFirstReceiveTimestamp"] != first.Attributes["ApproximateFirstReceiveTimestamp"] {
			t.Error("the time of the first receive changed")
		}
		if *again[0].MessageId != *first.MessageId || *again[0].ReceiptHandle == *first.ReceiptHandle {
			t.Error("want the same message id and another receipt handle")
		}
	})
}

func TestVisibilityEndsTwelveHoursAfterTheReceive(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=43200")
		h.send(queue, "", "m")
		m := h.receive(queue, 1, 0)[0]
		pass(time.Hour)
		wantCode(t, h.changeVisibility(queue, m, 43200), "InvalidParameterValue")
		wantCode(t, h.changeVisibility(queue, m, 43201), "InvalidParameterValue")
		if err := h.changeVisibility(queue, m, 11*60*60); err != nil {
			t.Errorf("11 h, one hour after the receive: %v", err)
		}
		pass(11*time.Hour - time.Millisecond)
		h.wantCounts(queue, "0/1/0")
		pass(time.Millisecond)
		h.wantCounts(queue, "1/0/0")
	})
}

func TestReceiptHandleHoldsUntilTheNextReceive(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=1")
		h.send(queue, "", "a")
		first := h.receive(queue, 1, 0)[0]
		pass(2 * time.Second) // its timeout is over
		if err := h.changeVisibility(queue, first, 1); err != nil {
			t.Errorf("change after the timeout: %v", err)
		}
		second := h.receive(queue, 1, 2)[0]
		h.delete(queue, first)
		wantCode(t, h.changeVisibility(queue, first, 10), "InvalidParameterValue")
		pass(2 * time.Second)
		h.wantCounts(queue, "1/0/0")
		h.delete(queue, second)
		h.delete(queue, second)
		h.wantCounts(queue, "0/0/0")
		wantCode(t, h.changeVisibility(queue, second, 10), "InvalidParameterValue")
	})
}

func TestDelayedMessageComesOnTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "DelaySeconds=3")
		h.send(queue, "", "default")
		if _, err := h.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("own"), DelaySeconds: 900}); err != nil {
			t.Fatal(err)
		}
		h.wantCounts(queue, "0/0/2")
		var got []types.Message
		if d := elapsed(func() { got = h.receive(queue, 10, 20) }); d != 3*time.Second || !slices.Equal(bodies(got), []string{"default"}) {
			t.Errorf("got %v after %v, want [default] after 3s", bodies(got), d)
		}
		pass(897*time.Second - time.Millisecond)
		h.wantCounts(queue, "1/0/1") // the first is back from its visibility timeout
		pass(time.Millisecond)
		h.wantCounts(queue, "2/0/0")
	})
}

func TestMessagesExpireByAge(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "MessageRetentionPeriod=60", "VisibilityTimeout=600")
		h.send(queue, "", "in flight", "waiting")
		h.receive(queue, 1, 0)
		pass(30 * time.Second)
		h.send(queue, "", "young")
		pass(30*time.Second - time.Millisecond)
		h.wantCounts(queue, "2/1/0")
		pass(time.Millisecond)
		h.wantCounts(queue, "1/0/0")
		if got := bodies(h.drain(queue)); !slices.Equal(got, []string{"young"}) {
			t.Errorf("got %v, want [young]", got)
		}
	})
}

func TestLongPollReturnsWhenItsWaitIsOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "ReceiveMessageWaitTimeSeconds=4")
		for _, test := range []struct {
			wait int32 // 0 is not sent: the queue's own wait counts
			want time.Duration
		}{{1, time.Second}, {20, 20 * time.Second}, {0, 4 * time.Second}} {
			if d := elapsed(func() { h.receive(queue, 1, test.wait) }); d != test.want {
				t.Errorf("wait of %d s: returned after %v, want %v", test.wait, d, test.want)
			}
		}
	})
}

func TestLongPollWakesWhenAMessageBecomesVisible(t *testing.T) {
	show := func(h *harness, queue string, m types.Message, after int32) {
		if err := h.changeVisibility(queue, m, after); err != nil {
			h.Error(err)
		}
	}
	for name, test := range map[string]struct {
		during func(h *harness, queue string, hidden types.Message) // a quarter of a second into the wait
		want   time.Duration
	}{
		"sent":             {func(h *harness, queue string, _ types.Message) { h.send(queue, "", "m") }, 250 * time.Millisecond},
		"given back":       {func(h *harness, queue string, m types.Message) { show(h, queue, m, 0) }, 250 * time.Millisecond},
		"sent with delay":  {func(h *harness, queue string, _ types.Message) { h.sendDelayed(queue, "m", 1) }, 1250 * time.Millisecond},
		"hidden for less":  {func(h *harness, queue string, m types.Message) { show(h, queue, m, 1) }, 1250 * time.Millisecond},
		"deleted and sent": {func(h *harness, queue string, m types.Message) { h.delete(queue, m); h.send(queue, "", "m") }, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, h *harness) {
				queue := h.queue("q", "VisibilityTimeout=600")
				h.send(queue, "", "hidden")
				hidden := h.receive(queue, 1, 0)[0]
				time.AfterFunc(250*time.Millisecond, func() { test.during(h, queue, hidden) })
				var got []types.Message
				if d := elapsed(func() { got = h.receive(queue, 1, 20) }); d != test.want || len(got) != 1 {
					t.Errorf("got %d messages after %v, want 1 after %v", len(got), d, test.want)
				}
			})
		})
	}
}

func (h *harness) sendDelayed(queue, body string, seconds int32) {
	h.Helper()
	if _, err := h.SendMessage(h.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body, DelaySeconds: seconds}); err != nil {
		h.Fatalf("SendMessage: %v", err)
	}
}

func TestLongPollEndsWithItsClientAndWithTheServer(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = h.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20}) }()
		pass(time.Second)
		cancel()
		h.send(queue, "", "m")
		synctest.Wait()
		h.wantCounts(queue, "1/0/0") // nothing is taken for a client that went away
		h.delete(queue, h.receive(queue, 1, 0)[0])
		time.AfterFunc(time.Second, func() {
			if err := h.server.Close(); err != nil {
				t.Error(err)
			}
		})
		var got []types.Message
		if d := elapsed(func() { got = h.receive(queue, 1, 20) }); d != time.Second || len(got) != 0 {
			t.Errorf("got %d messages after %v, want none after 1s", len(got), d)
		}
		_, err := h.ListQueues(t.Context(), &sqs.ListQueuesInput{})
		wantCode(t, err, "ServiceUnavailable")
	})
}

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
