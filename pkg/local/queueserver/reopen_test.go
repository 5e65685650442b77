package queueserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dump returns a queue's messages by their numbers, each with all that a snapshot keeps of it, and checks on the way that
// the queue's counts and lists agree.
func (f *fixture) dump(t *rapid.T) map[string]string {
	all := map[string]string{}
	err := f.update(func(c *change) error {
		for _, q := range c.queues {
			if err := c.refresh(q); err != nil {
				return err
			}
			checkQueue(t, q)
			all[q.name] = fmt.Sprint(q.attributes, q.tags, q.created, q.modified, q.purged)
			for _, m := range q.messages {
				put := &messagePut{Queue: q.id, Group: m.group.name, Message: *m, InFlight: m.phase == phaseInFlight, Delayed: m.phase == phaseDelayed}
				all[fmt.Sprintf("%s %d", q.name, m.Seq)] = fmt.Sprintf("%x", appendRecord(nil, put))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func checkQueue(t *rapid.T, q *queue) {
	ready, inFlight, members := 0, 0, 0
	for name, g := range q.groups {
		line := 0
		for m := g.head; m != nil; m = m.next {
			line++
		}
		if line != g.ready || g.name != name || (g.ready > 0) != (g.index >= 0) || g.index >= 0 && q.line.items[g.index] != g || g.members == 0 {
			t.Fatalf("group %q: %d in line, %+v", name, line, g)
		}
		ready, inFlight, members = ready+g.ready, inFlight+g.inFlight, members+g.members
	}
	if ready != q.ready || inFlight != q.inFlight || members != len(q.messages) || q.ready+q.inFlight+q.delayed != len(q.messages) ||
		q.invisible.Len() != q.inFlight+q.delayed || q.age.Len() != len(q.messages) {
		t.Fatalf("queue %s: %d ready, %d in flight, %d delayed, %d messages; groups have %d, %d and %d", q.name,
			q.ready, q.inFlight, q.delayed, len(q.messages), ready, inFlight, members)
	}
}

// machine does what clients do, at random, and reopens the server in between.
type machine struct {
	*fixture
	handles []string
}

func (m *machine) send(t *rapid.T) {
	e := sendEntry{
		MessageBody:    rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "body"),
		MessageGroupID: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "group"),
		DelaySeconds:   rapid.SampledFrom([]*int64{nil, new(int64(0)), new(int64(5))}).Draw(t, "delay"),
	}
	if rapid.Bool().Draw(t, "with an attribute") {
		e.MessageAttributes = map[string]attributeValue{"n": {DataType: "Binary", BinaryValue: []byte{1}}}
	}
	if _, err := m.sendMessage(m.call(), &sendMessageInput{m.target(t), e}); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) target(t *rapid.T) queueRef {
	return ref(rapid.SampledFrom([]string{"source", "source", "dead"}).Draw(t, "queue"))
}

func (m *machine) receive(t *rapid.T) {
	out, err := m.receiveMessage(m.call(), &receiveMessageInput{
		queueRef: m.target(t), MaxNumberOfMessages: new(rapid.Int64Range(1, 10).Draw(t, "n")),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range out.Messages {
		m.handles = append(m.handles, r.ReceiptHandle)
	}
}

// use answers for a receipt handle, right or wrong queue, right or too late: every answer but a fault of ours is good.
func (m *machine) use(t *rapid.T, act receiptAction) {
	if len(m.handles) == 0 {
		t.Skip("nothing was received")
	}
	_, err := m.onReceipt(act)(m.call(), &receiptInput{m.target(t), receiptEntry{
		ReceiptHandle:     rapid.SampledFrom(m.handles).Draw(t, "handle"),
		VisibilityTimeout: new(rapid.SampledFrom([]int64{0, 3, 40000}).Draw(t, "timeout")),
	}})
	if _, refused := err.(*apiError); err != nil && !refused {
		t.Fatal(err)
	}
}

func (m *machine) delete(t *rapid.T) {
	m.use(t, (*change).acknowledge)
}

func (m *machine) changeVisibility(t *rapid.T) {
	m.use(t, (*change).changeVisibility)
}

func (m *machine) pass(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.Int64Range(1, 20_000).Draw(t, "ms")) * time.Millisecond)
}

func (m *machine) purge(t *rapid.T) {
	if _, err := m.purgeQueue(m.call(), new(m.target(t))); err != nil && err.(*apiError).shape != errPurging("").shape {
		t.Fatal(err)
	}
}

func (m *machine) retag(t *rapid.T) {
	tags := map[string]string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag"): "v"}
	if _, err := m.tagQueue(m.call(), &tagQueueInput{m.target(t), tags}); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) redriveAll(t *rapid.T) {
	_, err := m.startMessageMoveTask(m.call(), &startTaskInput{SourceARN: m.arn("dead"), DestinationARN: m.arn("source")})
	if _, refused := err.(*apiError); err != nil && !refused {
		t.Fatal(err)
	}
	for running := true; running; {
		err := m.update(func(c *change) error {
			of := c.tasksOf("dead")
			running = len(of) > 0 && of[0].Status == taskRunning
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (m *machine) crash(t *rapid.T) {
	before := m.dump(t)
	m.reopen()
	if diff := cmp.Diff(before, m.dump(t)); diff != "" {
		t.Fatalf("state before and after the server was reopened (-before +after):\n%s", diff)
	}
}

// A reopened server has the state of the one that was closed, whatever happened before and however much of it a snapshot
// has replaced.
func TestReopenedServerHasTheSameState(t *testing.T) {
	for name, compactBytes := range map[string]int64{"journal": 1 << 30, "snapshots": 2000} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				m := &machine{fixture: newFixture(t, t.TempDir(), compactBytes)}
				defer m.Close()
				m.queue("dead", nil)
				policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, m.arn("dead"))
				m.queue("source", map[string]string{"VisibilityTimeout": "7", "MessageRetentionPeriod": "60", "RedrivePolicy": policy})
				rt.Repeat(map[string]func(*rapid.T){
					"send": m.send, "receive": m.receive, "delete": m.delete, "change visibility": m.changeVisibility, "pass": m.pass, "purge": m.purge,
					"tag": m.retag, "move": m.redriveAll, "reopen": m.crash,
				})
				m.crash(rt)
			})
		})
	}
}

func TestDeletedQueueKeepsItsNameOverASnapshotForAMinute(t *testing.T) {
	f := newFixture(t, t.TempDir(), 1)
	f.queue("q", nil)
	_, err := f.deleteQueue(f.call(), new(ref("q")))
	f.must(err)
	f.queue("other", nil)
	f.reopen()
	create := func() error {
		_, err := f.createQueue(f.call(), &createQueueInput{QueueName: "q"})
		return err
	}
	if err := create(); err == nil {
		t.Error("the name was free at once")
	}
	f.now = f.now.Add(time.Minute)
	f.must(create())
}
