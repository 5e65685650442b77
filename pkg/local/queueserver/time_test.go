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
func pass(d time.Duration) { time.Sleep(d) }

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

func TestOldReceiptHandleDoesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=1")
		h.send(queue, "", "m")
		first := h.receive(queue, 1, 0)[0]
		second := h.receive(queue, 1, 2)[0]
		h.delete(queue, first)
		wantCode(t, h.changeVisibility(queue, first, 10), "InvalidParameterValue")
		h.wantCounts(queue, "0/1/0")
		h.delete(queue, second)
		h.delete(queue, second)
		h.wantCounts(queue, "0/0/0")
		wantCode(t, h.changeVisibility(queue, second, 10), "InvalidParameterValue")
	})
}

func TestReceiptHandleHoldsAfterTheTimeoutUntilTheNextReceive(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=1")
		h.send(queue, "", "a", "b")
		late := h.receive(queue, 2, 0)
		pass(2 * time.Second)
		h.wantCounts(queue, "2/0/0")
		if err := h.changeVisibility(queue, late[0], 10); err != nil {
			t.Errorf("change after the timeout: %v", err)
		}
		h.delete(queue, late[1])
		h.wantCounts(queue, "0/1/0")
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
	for _, test := range []struct {
		name    string
		prepare func(h *harness, queue string) (arrive func())
	}{
		{"sent", func(h *harness, queue string) func() {
			return func() { h.send(queue, "", "m") }
		}},
		{"given back", func(h *harness, queue string) func() {
			h.send(queue, "", "m")
			m := h.receive(queue, 1, 0)[0]
			return func() {
				if err := h.changeVisibility(queue, m, 0); err != nil {
					h.Error(err)
				}
			}
		}},
		{"sent with a delay during the wait", func(h *harness, queue string) func() {
			time.AfterFunc(time.Second/4, func() {
				h.sendDelayed(queue, "m", 1)
			})
			return func() {}
		}},
		{"invisible for less than before during the wait", func(h *harness, queue string) func() {
			h.send(queue, "", "m")
			m := h.receive(queue, 1, 0)[0]
			time.AfterFunc(time.Second/4, func() {
				if err := h.changeVisibility(queue, m, 1); err != nil {
					h.Error(err)
				}
			})
			return func() {}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, h *harness) {
				queue := h.queue("q", "VisibilityTimeout=600")
				arrive := test.prepare(h, queue)
				time.AfterFunc(time.Second, arrive)
				var got []types.Message
				if d := elapsed(func() { got = h.receive(queue, 1, 20) }); d < time.Second || d > 1250*time.Millisecond || len(got) != 1 {
					t.Errorf("got %d messages after %v, want 1 after 1s to 1.25s", len(got), d)
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

func TestCloseReleasesLongPolls(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q")
		var got []types.Message
		var released time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			released = elapsed(func() { got = h.receive(queue, 1, 20) })
		}()
		pass(time.Second)
		if err := h.server.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		if released != time.Second || len(got) != 0 {
			t.Errorf("got %d messages after %v, want none after 1s", len(got), released)
		}
		_, err := h.ListQueues(t.Context(), &sqs.ListQueuesInput{})
		wantCode(t, err, "ServiceUnavailable")
	})
}

func TestNothingIsTakenForAClientThatWentAway(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20})
		}()
		pass(time.Second)
		cancel()
		h.send(queue, "", "m")
		<-done
		h.wantCounts(queue, "1/0/0")
	})
}

func TestInFlightMessagesAreLimited(t *testing.T) {
	bubble(t, &Config{MaxInFlight: 5}, func(t *testing.T, h *harness) {
		queue := h.queue("q", "VisibilityTimeout=60")
		h.send(queue, "", numbered("m", 8)...)
		held := h.receive(queue, 10, 0)
		if len(held) != 5 {
			t.Fatalf("received %d messages, want 5", len(held))
		}
		if got := h.receive(queue, 10, 3); len(got) != 0 {
			t.Errorf("a long poll at the limit got %d messages, want none", len(got))
		}
		_, err := h.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue})
		if !is[*types.OverLimit](err) {
			t.Errorf("a short poll at the limit: got %v, want OverLimit", err)
		}
		time.AfterFunc(time.Second, func() {
			h.delete(queue, held[0])
		})
		var got []types.Message
		if d := elapsed(func() { got = h.receive(queue, 10, 20) }); len(got) != 1 || d != time.Second {
			t.Errorf("got %d messages after %v, want 1 when a place became free after 1s", len(got), d)
		}
		h.wantCounts(queue, "2/5/0")
	})
}

func TestTheAgeOfTheOldestMessageIsToldToWhoAsksForIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q")
		age := func(name types.QueueAttributeName) string {
			out, err := h.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{name}})
			if err != nil {
				t.Fatal(err)
			}
			return out.Attributes["ApproximateAgeOfOldestMessage"]
		}
		const oldest = "ApproximateAgeOfOldestMessage"
		if got := age(oldest); got != "" {
			t.Errorf("of an empty queue: got %q, want none", got)
		}
		h.send(queue, "", "m")
		pass(90 * time.Second)
		h.send(queue, "", "n")
		if got := age(oldest); got != "90" {
			t.Errorf("got %q, want 90 s", got)
		}
		if got := age("All"); got != "" {
			t.Errorf("with all attributes of SQS: got %q, want none", got)
		}
		h.delete(queue, h.receive(queue, 1, 0)[0])
		if got := age(oldest); got != "0" {
			t.Errorf("after the oldest was deleted: got %q, want 0", got)
		}
	})
}

func TestVisibilityChangesInBatches(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		queue := h.queue("q")
		h.send(queue, "", "back", "later")
		held := h.receive(queue, 2, 0)
		out, err := h.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &queue, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("a"), ReceiptHandle: held[0].ReceiptHandle, VisibilityTimeout: 0},
				{Id: aws.String("b"), ReceiptHandle: held[1].ReceiptHandle, VisibilityTimeout: 100},
				{Id: aws.String("c"), ReceiptHandle: held[1].ReceiptHandle, VisibilityTimeout: 43201},
			},
		})
		if err != nil || len(out.Successful) != 2 || len(out.Failed) != 1 || *out.Failed[0].Code != "InvalidParameterValue" {
			t.Fatalf("got %v, %+v; want a and b to succeed and c to fail", err, out)
		}
		pass(99 * time.Second)
		h.wantCounts(queue, "1/1/0")
		pass(time.Second)
		h.wantCounts(queue, "2/0/0")
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
