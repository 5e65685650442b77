package queueserver_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// fail receives what is visible and gives it back, n times.
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
		h.send(source, "tenant", "poison")
		var first types.Message
		for want := 1; want <= 3; want++ {
			got := h.receive(source, 1, 5)
			if len(got) != 1 || got[0].Attributes["ApproximateReceiveCount"] != fmt.Sprint(want) {
				t.Fatalf("receive %d: got %d messages", want, len(got))
			}
			first = got[0]
		}
		time.Sleep(time.Second)
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
	})
}

// The age of a dead letter counts from its first send, as in Amazon SQS.
func TestDeadLetterKeepsItsAge(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		source, dead := h.withDeadLetters(1, "VisibilityTimeout=1")
		if _, err := h.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: &dead, Attributes: map[string]string{"MessageRetentionPeriod": "60"},
		}); err != nil {
			t.Fatal(err)
		}
		h.send(source, "", "m")
		h.receive(source, 1, 0)
		time.Sleep(50 * time.Second)
		h.receive(source, 1, 0)
		h.wantCounts(dead, "1/0/0")
		time.Sleep(10 * time.Second)
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

func TestRedriveIsCheckedAgainstItsTarget(t *testing.T) {
	h := overWire(t, nil)
	h.queue("open")
	h.queue("closed", `RedriveAllowPolicy={"redrivePermission":"denyAll"}`)
	h.queue("picky", fmt.Sprintf(`RedriveAllowPolicy={"redrivePermission":"byQueue","sourceQueueArns":[%q]}`, arn("friend")))
	for _, test := range []struct {
		queue, policy string
		ok            bool
	}{
		{"a", `{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":1}`, true},
		{"b", `{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":"1000"}`, true},
		{"friend", `{"deadLetterTargetArn":"` + arn("picky") + `","maxReceiveCount":5}`, true},
		{"c", `{"deadLetterTargetArn":"` + arn("picky") + `","maxReceiveCount":5}`, false},
		{"c", `{"deadLetterTargetArn":"` + arn("closed") + `","maxReceiveCount":5}`, false},
		{"c", `{"deadLetterTargetArn":"` + arn("nowhere") + `","maxReceiveCount":5}`, false},
		{"c", `{"deadLetterTargetArn":"` + arn("c") + `","maxReceiveCount":5}`, false},
		{"c", `{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":0}`, false},
		{"c", `{"deadLetterTargetArn":"` + arn("open") + `","maxReceiveCount":1001}`, false},
		{"c", `{"deadLetterTargetArn":"` + arn("open") + `"}`, false},
		{"c", `{"deadLetterTargetArn":"dummy","maxReceiveCount":42}`, false},
		{"c", `not json`, false},
	} {
		_, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{
			QueueName: &test.queue, Attributes: map[string]string{"RedrivePolicy": test.policy},
		})
		if test.ok && err != nil {
			t.Errorf("%s %s: %v", test.queue, test.policy, err)
		}
		if !test.ok {
			wantCode(t, err, "InvalidParameterValue")
		}
	}
	sources, err := h.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{
		QueueUrl: aws.String("http://h/000000000000/open"),
	})
	if err != nil || len(sources.QueueUrls) != 2 {
		t.Errorf("ListDeadLetterSourceQueues: %v, %v; want two queues", err, sources)
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

func (h *harness) tasks(source string) []types.ListMessageMoveTasksResultEntry {
	h.Helper()
	out, err := h.ListMessageMoveTasks(h.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn(source)), MaxResults: aws.Int32(10)})
	if err != nil {
		h.Fatal(err)
	}
	return out.Results
}

// wantTask compares the newest task of the queue "dead".
func (h *harness) wantTask(status string, moved, toMove int64) types.ListMessageMoveTasksResultEntry {
	h.Helper()
	newest := h.tasks("dead")[0]
	if *newest.Status != status || newest.ApproximateNumberOfMessagesMoved != moved || *newest.ApproximateNumberOfMessagesToMove != toMove {
		h.Errorf("task: got %s, %d of %d moved; want %s, %d of %d", *newest.Status,
			newest.ApproximateNumberOfMessagesMoved, *newest.ApproximateNumberOfMessagesToMove, status, moved, toMove)
	}
	return newest
}

func TestMoveTaskBringsMessagesBackAsNew(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		source, dead := h.deadLetters(numbered("m", 450)...)
		time.Sleep(time.Hour)
		started, err := h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))})
		if err != nil || *started.TaskHandle == "" {
			t.Fatalf("StartMessageMoveTask: %v", err)
		}
		synctest.Wait()
		h.wantCounts(dead, "0/0/0")
		got := h.drain(source)
		if len(got) != 450 {
			t.Fatalf("got %d messages, want 450", len(got))
		}
		m := got[0]
		sent := fmt.Sprint(time.Now().UnixMilli())
		if m.Attributes["ApproximateReceiveCount"] != "1" || m.Attributes["SentTimestamp"] != sent || m.Attributes["DeadLetterQueueSourceArn"] != "" {
			t.Errorf("want a new message with one receive, sent at %s; got %v", sent, m.Attributes)
		}
		if newest := h.wantTask("COMPLETED", 450, 450); newest.TaskHandle != nil {
			t.Error("a task that has ended shows its handle")
		}
	})
}

func TestMoveTaskKeepsToItsRateAndCanBeCancelled(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		source, dead := h.deadLetters(numbered("m", 10)...)
		started, err := h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{
			SourceArn: aws.String(arn("dead")), DestinationArn: aws.String(arn("source")), MaxNumberOfMessagesPerSecond: aws.Int32(2),
		})
		if err != nil {
			t.Fatal(err)
		}
		if running := h.wantTask("RUNNING", 0, 10); aws.ToString(running.TaskHandle) != *started.TaskHandle {
			t.Error("a running task does not show its handle")
		}
		_, err = h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))})
		wantCode(t, err, "InvalidParameterValue")
		time.Sleep(2*time.Second + time.Millisecond)
		h.wantTask("RUNNING", 4, 10)
		cancelled, err := h.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle})
		if err != nil || cancelled.ApproximateNumberOfMessagesMoved != 4 {
			t.Errorf("CancelMessageMoveTask: %v, %+v; want 4 moved", err, cancelled)
		}
		time.Sleep(time.Minute)
		h.wantTask("CANCELLED", 4, 10)
		h.wantCounts(source, "4/0/0")
		h.wantCounts(dead, "6/0/0")
		_, err = h.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle})
		if !is[*types.UnsupportedOperation](err) {
			t.Errorf("cancel again: got %v, want UnsupportedOperation", err)
		}
	})
}

func TestMoveTaskGoesOnAfterAReopen(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := inBubble(t, dir, nil)
		source, dead := h.deadLetters(numbered("m", 10)...)
		if _, err := h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{
			SourceArn: aws.String(arn("dead")), MaxNumberOfMessagesPerSecond: aws.Int32(1),
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Second + time.Millisecond)
		if err := h.server.Close(); err != nil {
			t.Fatal(err)
		}
		h = inBubble(t, dir, nil)
		h.send(dead, "", "later") // arrived after the start: not the task's
		time.Sleep(8 * time.Second)
		h.wantTask("COMPLETED", 10, 10)
		h.wantCounts(source, "10/0/0")
		h.wantCounts(dead, "1/0/0")
	})
}

func TestMoveTaskFailsWhereAMessageCannotGo(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		arrange      func(h *harness, source, dead string)
		moved        int64
	}{
		{
			"message that was sent to the dead-letter queue", "CouldNotDetermineMessageSource",
			func(h *harness, _, dead string) { h.send(dead, "", "direct") }, 2,
		},
		{
			"source that is gone", "AWS.SimpleQueueService.NonExistentQueue",
			func(h *harness, source, _ string) {
				h.queue("other", fmt.Sprintf(`RedrivePolicy={"deadLetterTargetArn":%q,"maxReceiveCount":1}`, arn("dead")))
				if _, err := h.DeleteQueue(h.Context(), &sqs.DeleteQueueInput{QueueUrl: &source}); err != nil {
					h.Fatal(err)
				}
			}, 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, h *harness) {
				source, dead := h.deadLetters("a", "b")
				test.arrange(h, source, dead)
				if _, err := h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				task := h.tasks("dead")[0]
				if *task.Status != "FAILED" || *task.FailureReason != test.reason || task.ApproximateNumberOfMessagesMoved != test.moved {
					t.Errorf("got %s %q, %d moved; want FAILED %q, %d", *task.Status, aws.ToString(task.FailureReason),
						task.ApproximateNumberOfMessagesMoved, test.reason, test.moved)
				}
			})
		})
	}
}

func TestMoveTaskIsRefused(t *testing.T) {
	h := overWire(t, nil)
	h.withDeadLetters(1)
	start := func(source, destination string, rate int32) error {
		in := &sqs.StartMessageMoveTaskInput{SourceArn: &source}
		if destination != "" {
			in.DestinationArn = &destination
		}
		if rate != 0 {
			in.MaxNumberOfMessagesPerSecond = &rate
		}
		_, err := h.StartMessageMoveTask(t.Context(), in)
		return err
	}
	wantCode(t, start(arn("source"), "", 0), "InvalidParameterValue") // no dead-letter queue
	wantCode(t, start(arn("nowhere"), "", 0), "ResourceNotFoundException")
	wantCode(t, start(arn("dead"), arn("nowhere"), 0), "ResourceNotFoundException")
	wantCode(t, start(arn("dead"), arn("dead"), 0), "InvalidParameterValue")
	wantCode(t, start(arn("dead"), "", 501), "InvalidParameterValue")
	_, err := h.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: aws.String("rubbish")})
	wantCode(t, err, "InvalidParameterValue")
	_, err = h.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn("nowhere"))})
	if !is[*types.ResourceNotFoundException](err) {
		t.Errorf("ListMessageMoveTasks of an unknown source: got %v", err)
	}
}

func TestListKeepsTheTenNewestTasks(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *harness) {
		h.withDeadLetters(1)
		var started []int64
		for range 12 {
			if _, err := h.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))}); err != nil {
				t.Fatal(err)
			}
			started = append([]int64{time.Now().UnixMilli()}, started...)
			time.Sleep(time.Second)
		}
		var listed []int64
		for _, task := range h.tasks("dead") {
			listed = append(listed, task.StartedTimestamp)
		}
		if !slices.Equal(listed, started[:10]) {
			t.Errorf("started at: got %v, want %v", listed, started[:10])
		}
	})
}
