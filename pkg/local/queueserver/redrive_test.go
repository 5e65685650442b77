package queueserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// fail receives the visible messages and gives them back, n times.
func (h *harness) fail(queue string, n int) {
	h.Helper()
	for range n {
		for _, m := range h.drain(queue) {
			if err := h.changeVisibility(queue, m, 0); err != nil {
				h.Fatal(err)
			}
		}
	}
}

func TestMessageGoesToItsDeadLetterQueueAfterTheLastReceive(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		source, dead := h.withDeadLetters(3, "VisibilityTimeout=1")
		sent := time.Now()
		h.send(source, "tenant", "poison")
		var first types.Message
		for want := 1; want <= 3; want++ {
			got := h.receive(source, 1, 5)
			if len(got) != 1 || got[0].Attributes["ApproximateReceiveCount"] != fmt.Sprint(want) {
				t.Fatalf("receive %d: got %d messages", want, len(got))
			}
			first = got[0]
		}
		pass(time.Second)
		if got := h.receive(source, 1, 1); len(got) != 0 {
			t.Fatalf("received a 4th time with maxReceiveCount 3")
		}
		got := h.receive(dead, 1, 0)
		if len(got) != 1 {
			t.Fatal("nothing in the dead-letter queue")
		}
		m := got[0]
		want := map[string]string{
			"DeadLetterQueueSourceArn": arn("source"), "ApproximateReceiveCount": "4", "MessageGroupId": "tenant",
			"SentTimestamp": first.Attributes["SentTimestamp"],
		}
		for name, value := range want {
			if m.Attributes[name] != value {
				t.Errorf("%s: got %q, want %q", name, m.Attributes[name], value)
			}
		}
		if *m.MessageId != *first.MessageId {
			t.Error("redrive changed the message id")
		}
		h.delete(source, first)
		h.wantCounts(dead, "0/1/0")
		pass(4*24*time.Hour - time.Since(sent) - time.Millisecond)
		h.wantCounts(dead, "1/0/0")
		pass(time.Millisecond) // its age counts from its first send
		h.wantCounts(dead, "0/0/0")
	})
}

func TestChainedDeadLetterQueuesCountForThemselves(t *testing.T) {
	h := overWire(t, nil)
	policy := func(target string, n int) string {
		return fmt.Sprintf(`RedrivePolicy={"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn(target), n)
	}
	last := h.queue("last")
	middle := h.queue("middle", policy("last", 2))
	first := h.queue("first", policy("middle", 1))
	h.send(first, "", "m")
	h.fail(first, 2)
	h.wantCounts(middle, "1/0/0")
	h.fail(middle, 2)
	h.wantCounts(middle, "1/0/0")
	h.fail(middle, 1)
	h.wantCounts(last, "1/0/0")
}

func TestRedrivePolicyIsChecked(t *testing.T) {
	h := overWire(t, nil)
	h.queue("open")
	for name, test := range map[string]struct{ policy, code string }{
		"number":          {`{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":1}`, ""},
		"text":            {`{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":"1000"}`, ""},
		"unknown-target":  {`{"deadLetterTargetArn":"` + arn("nowhere") + `","maxReceiveCount":5}`, "InvalidParameterValue"},
		"itself":          {`{"deadLetterTargetArn":"` + arn("itself") + `","maxReceiveCount":5}`, "InvalidParameterValue"},
		"no-target":       {`{"maxReceiveCount":5}`, "InvalidParameterValue"},
		"never":           {`{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":0}`, "InvalidParameterValue"},
		"more-than-1000":  {`{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":1001}`, "InvalidParameterValue"},
		"no-receives":     {`{"deadLetterTargetArn":"` + arn("open") + `"}`, "InvalidParameterValue"},
		"other-than-json": {`not json`, "InvalidParameterValue"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"RedrivePolicy": test.policy}})
			wantCode(t, err, test.code)
		})
	}
}

// deadLetters makes a source and its dead-letter queue and fills the latter.
func (h *harness) deadLetters(bodies ...string) (source, dead string) {
	h.Helper()
	source, dead = h.withDeadLetters(1)
	h.send(source, "", bodies...)
	h.fail(source, 2)
	h.wantCounts(dead, fmt.Sprintf("%d/0/0", len(bodies)))
	return source, dead
}

// wantTask compares the latest task of the queue "dead".
func (h *harness) wantTask(status string, moved, toMove int64) {
	h.Helper()
	out, err := h.ListMessageMoveTasks(h.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn("dead"))})
	if err != nil || len(out.Results) != 1 {
		h.Fatalf("ListMessageMoveTasks: %v, %+v; want a task", err, out)
	}
	got := out.Results[0]
	if *got.Status != status || got.ApproximateNumberOfMessagesMoved != moved || *got.ApproximateNumberOfMessagesToMove != toMove {
		h.Errorf("task: got %s, %d of %d moved; want %s, %d of %d", *got.Status, got.ApproximateNumberOfMessagesMoved, *got.ApproximateNumberOfMessagesToMove, status, moved, toMove)
	}
}

// redrive starts to move the messages of the queue "dead" to the queue "source".
func (h *harness) redrive() (handle *string, err error) {
	out, err := h.StartMessageMoveTask(h.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead")), DestinationArn: aws.String(arn("source"))})
	if err != nil {
		return nil, err
	}
	return out.TaskHandle, nil
}

func TestMoveTaskBringsMessagesBackAsNew(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		source, dead := h.deadLetters(numbered("m", 450)...)
		pass(time.Hour)
		if _, err := h.redrive(); err != nil {
			t.Fatal(err)
		}
		h.send(dead, "", "later") // is not the task's
		sent := fmt.Sprint(time.Now().Add(taskPause).UnixMilli())
		pass(time.Second)
		h.wantCounts(dead, "1/0/0")
		got := h.drain(source)
		if len(got) != 450 {
			t.Fatalf("got %d messages, want 450", len(got))
		}
		m := got[0]
		if m.Attributes["ApproximateReceiveCount"] != "1" || m.Attributes["SentTimestamp"] != sent || m.Attributes["DeadLetterQueueSourceArn"] != "" {
			t.Errorf("want a new message with one receive, sent at %s; got %v", sent, m.Attributes)
		}
		h.wantTask("COMPLETED", 450, 450)
	})
}

func TestMoveTaskCanBeCancelled(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		source, dead := h.deadLetters(numbered("m", 3*taskSlice)...)
		handle, err := h.redrive()
		if err != nil {
			t.Fatal(err)
		}
		h.wantTask("RUNNING", 0, 3*taskSlice)
		_, err = h.redrive()
		wantCode(t, err, "InvalidParameterValue")
		pass(2*taskPause + taskPause/2)
		h.wantTask("RUNNING", 2*taskSlice, 3*taskSlice)
		cancelled, err := h.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: handle})
		if err != nil || cancelled.ApproximateNumberOfMessagesMoved != 2*taskSlice {
			t.Errorf("CancelMessageMoveTask: %v, %+v; want %d moved", err, cancelled, 2*taskSlice)
		}
		pass(time.Minute)
		h.wantTask("CANCELLED", 2*taskSlice, 3*taskSlice)
		h.wantCounts(source, "400/0/0")
		h.wantCounts(dead, "200/0/0")
		_, err = h.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: handle})
		wantCode(t, err, "ResourceNotFoundException")
	})
}

func TestMoveTaskEndsWithTheServer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := inBubble(t, dir, nil)
		source, dead := h.deadLetters(numbered("m", 2*taskSlice)...)
		if _, err := h.redrive(); err != nil {
			t.Fatal(err)
		}
		pass(taskPause + taskPause/2)
		if err := h.server.Close(); err != nil {
			t.Fatal(err)
		}
		h = inBubble(t, dir, nil)
		pass(time.Minute)
		h.wantCounts(source, "200/0/0")
		h.wantCounts(dead, "200/0/0")
		if _, err := h.redrive(); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		h.wantCounts(source, "400/0/0")
	})
}

func TestMoveTaskIsRefused(t *testing.T) {
	h := overWire(t, nil)
	h.withDeadLetters(1)
	for _, test := range []struct {
		name, from, to string
		code           string
	}{
		{"not from a dead-letter queue", arn("source"), arn("dead"), "InvalidParameterValue"},
		{"from an unknown queue", arn("nowhere"), arn("source"), "ResourceNotFoundException"},
		{"to an unknown queue", arn("dead"), arn("nowhere"), "ResourceNotFoundException"},
		{"without a destination", arn("dead"), "", "MissingParameter"},
		{"to the same queue", arn("dead"), arn("dead"), "InvalidParameterValue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &test.from, DestinationArn: &test.to})
			wantCode(t, err, test.code)
		})
	}
}
