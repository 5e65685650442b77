package queueserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// machine does what clients do, at random, and reopens the server in between.
type machine struct {
	*harness
	dir     string
	config  Config
	now     time.Time
	queues  []string // URLs
	handles []string
}

func newMachine(t testing.TB) *machine {
	m := &machine{dir: t.TempDir(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.config = Config{Clock: func() time.Time { return m.now }}
	m.harness = inBubble(t, m.dir, &m.config)
	source, dead := m.withDeadLetters(2, "VisibilityTimeout=7", "MessageRetentionPeriod=60")
	m.queues = []string{source, source, dead}
	return m
}

// dump returns the queues and messages as the journal has them, and checks on the way that each queue's counts and lists
// agree.
func (m *machine) dump(t *rapid.T) map[string]string {
	all := map[string]string{}
	err := m.server.update(func(c change) error {
		for _, q := range c.queues {
			c.refresh(q)
			checkQueue(t, q)
			all[q.Name] = fmt.Sprint(q.queueLine)
			for _, of := range q.messages {
				text, err := json.Marshal(of, json.Deterministic(true))
				if err != nil {
					return err
				}
				all[of.ID] = fmt.Sprint(of.phase, string(text))
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
		if waits := g.ready.Len() > 0; g.name != name || waits != (g.index >= 0) || waits && q.line.items[g.index] != g || g.members == 0 {
			t.Fatalf("group %q: %+v", name, g)
		}
		ready, inFlight, members = ready+g.ready.Len(), inFlight+g.inFlight, members+g.members
	}
	all := len(q.messages)
	if want := [3]int{ready, all - ready - inFlight, inFlight}; q.count != want || members != all || q.invisible.Len() != all-ready || q.age.Len() != all {
		t.Fatalf("queue %s: counts %v, %d messages; groups have %v of %d", q.Name, q.count, all, want, members)
	}
}

func (m *machine) target(t *rapid.T) *string {
	return aws.String(rapid.SampledFrom(m.queues).Draw(t, "queue"))
}

// refusals fails the test for any error that is not a refusal of the request.
func (m *machine) refusals(t *rapid.T, err error) {
	if err != nil && !is[*types.ReceiptHandleIsInvalid](err) {
		wantCode(t, err, "InvalidParameterValue")
	}
}

func (m *machine) sendOne(t *rapid.T) {
	in := &sqs.SendMessageInput{
		QueueUrl: m.target(t), MessageBody: aws.String(rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "body")),
		MessageGroupId: rapid.SampledFrom([]*string{nil, aws.String("a"), aws.String("b")}).Draw(t, "group"),
		DelaySeconds:   rapid.SampledFrom([]int32{0, 5}).Draw(t, "delay"),
	}
	if rapid.Bool().Draw(t, "with an attribute") {
		in.MessageAttributes = map[string]types.MessageAttributeValue{"n": text("v")}
	}
	if _, err := m.SendMessage(m.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) receiveSome(t *rapid.T) {
	for _, r := range m.receive(*m.target(t), rapid.Int32Range(1, 10).Draw(t, "n"), 0) {
		m.handles = append(m.handles, *r.ReceiptHandle)
	}
}

// handle draws one of a message that may be received again, moved or gone.
func (m *machine) handle(t *rapid.T) *string {
	if len(m.handles) == 0 {
		t.Skip("nothing was received")
	}
	return aws.String(rapid.SampledFrom(m.handles).Draw(t, "handle"))
}

func (m *machine) deleteOne(t *rapid.T) {
	_, err := m.DeleteMessage(m.Context(), &sqs.DeleteMessageInput{QueueUrl: m.target(t), ReceiptHandle: m.handle(t)})
	m.refusals(t, err)
}

func (m *machine) hide(t *rapid.T) {
	_, err := m.ChangeMessageVisibility(m.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: m.target(t), ReceiptHandle: m.handle(t), VisibilityTimeout: rapid.SampledFrom([]int32{0, 3, 40000}).Draw(t, "timeout"),
	})
	m.refusals(t, err)
}

func (m *machine) pass(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.Int64Range(1, 20_000).Draw(t, "ms")) * time.Millisecond)
}

func (m *machine) redriveAll(t *rapid.T) {
	_, err := m.redrive()
	m.refusals(t, err)
	m.server.running.Wait()
}

func (m *machine) reopen(t *rapid.T) {
	before := m.dump(t)
	if err := m.server.Close(); err != nil {
		t.Fatal(err)
	}
	m.harness = inBubble(m.TB, m.dir, &m.config)
	if diff := cmp.Diff(before, m.dump(t)); diff != "" {
		t.Fatalf("state before and after the server was reopened (-before +after):\n%s", diff)
	}
}

// A reopened server has the state of the one that was closed, whatever happened before.
func TestReopenedServerHasTheSameState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t)
		rt.Repeat(map[string]func(*rapid.T){
			"send": m.sendOne, "receive": m.receiveSome, "delete": m.deleteOne, "change visibility": m.hide, "pass": m.pass,
			"move": m.redriveAll, "reopen": m.reopen,
		})
		m.reopen(rt)
	})
}
