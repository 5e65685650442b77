package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
)

// imports collects what is moved and what is postponed. A message tells in its
// attributes when it arrived.
type imports struct {
	mu        sync.Mutex
	moved     []string
	postponed []string
	later     []string
	fail      bool
}

func (i *imports) Postpone(ctx context.Context, messages ...*events.SQSMessage) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range messages {
		i.postponed = append(i.postponed, m.MessageId)
	}
	return nil
}

func (i *imports) Move(_ context.Context, messages ...*events.SQSMessage) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail {
		return errors.New("the queue is away")
	}
	for _, m := range messages {
		i.moved = append(i.moved, m.MessageId)
	}
	return nil
}

func (*imports) Moved(m *events.SQSMessage) bool { return m.EventSource == "imports" }

func (*imports) Origin(m *events.SQSMessage) (string, value.Time) {
	var at int64
	_, _ = fmt.Sscan(m.Attributes["SentTimestamp"], &at)
	return m.MessageId, value.Time(at)
}

// load is a message of many records, some 60 KB.
func (f *harness) load(records int) (body string, ids []value.ID) {
	var text strings.Builder
	fmt.Fprintf(&text, `{"organizationId":%q,"records":[`, f.org)
	for i := range records {
		if i > 0 {
			text.WriteByte(',')
		}
		ids = append(ids, value.NewID())
		fmt.Fprintf(&text, `{"kind":"product","op":"put","record":{"id":%q,"name":"imported","description":%q}}`, ids[i], strings.Repeat("x", 60_000/records))
	}
	text.WriteString("]}")
	return text.String(), ids
}

// invoke handles the messages and returns those that stay in the queue.
func (f *harness) invoke(t *testing.T, messages ...events.SQSMessage) (stay []string) {
	t.Helper()
	response, err := f.ingester.Handle(t.Context(), events.SQSEvent{Records: messages})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range response.BatchItemFailures {
		stay = append(stay, item.ItemIdentifier)
	}
	return stay
}

// finish handles messages of which none may stay.
func (f *harness) finish(t *testing.T, messages ...events.SQSMessage) {
	t.Helper()
	if stay := f.invoke(t, messages...); len(stay) > 0 {
		t.Errorf("come again: %v", stay)
	}
}

func TestMessageOfManyRecordsIsMovedAndAppliedWhereItComesThen(t *testing.T) {
	f := newHarness(t)
	body, ids := f.load(20)
	single := value.NewID()
	message := events.SQSMessage{MessageId: "load", Body: body}
	if stay := f.invoke(t, message, events.SQSMessage{MessageId: "single", Body: f.one(single, "single", 1)}); len(stay) > 0 || !slices.Equal(f.imports.moved, []string{"load"}) {
		t.Errorf("moved %v, stay %v; want the large one moved and none to stay", f.imports.moved, stay)
	}
	if f.product(t, single) == nil || f.product(t, ids[0]) != nil {
		t.Error("want the single record stored, and those of the large message not yet")
	}
	message.EventSource = "imports"
	if stay := f.invoke(t, message); len(stay) > 0 || len(f.imports.moved) != 1 {
		t.Errorf("moved %v, stay %v; want neither of what comes by the imports", f.imports.moved, stay)
	}
	for _, id := range ids {
		if f.product(t, id) == nil {
			t.Errorf("record %s is not stored", id)
		}
	}
}

func TestMessageThatCannotBeMovedStaysInTheQueue(t *testing.T) {
	f := newHarness(t)
	f.imports.fail = true
	body, _ := f.load(20)
	single := value.NewID()
	stay := f.invoke(t, events.SQSMessage{MessageId: "load", Body: body}, events.SQSMessage{MessageId: "single", Body: f.one(single, "single", 1)})
	if !slices.Equal(stay, []string{"load"}) || f.product(t, single) == nil {
		t.Errorf("stay: %v, want the large message, and the other one applied", stay)
	}
	if !slices.Equal(f.imports.postponed, stay) {
		t.Errorf("postponed: %v, want what stays", f.imports.postponed)
	}
}

// An import is overtaken by what is sent after it, and must not undo that.
func TestChangeThatWasSentEarlierDoesNotUndoALaterOne(t *testing.T) {
	f, id := newHarness(t), value.NewID()
	put := func(name string, sent int) events.SQSMessage {
		body := fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":%q}}`, f.org, id, name)
		return events.SQSMessage{MessageId: name, Body: body, Attributes: map[string]string{"SentTimestamp": fmt.Sprint(1_795_000_000_000 + sent)}}
	}
	for _, step := range []struct {
		name string
		sent int
		want string
	}{
		{"first", 10_000, "first"},
		{"earlier", 5_000, "first"},
		{"about the same time", 9_500, "about the same time"}, // hosts' clocks differ
		{"later", 30_000, "later"},
		{"overtaken", 20_000, "later"},
	} {
		if stay := f.invoke(t, put(step.name, step.sent)); len(stay) > 0 {
			t.Errorf("%s: stays in the queue", step.name)
		}
		if got := f.product(t, id); got == nil || got.Name != step.want {
			t.Errorf("after %q: got %+v, want %q", step.name, got, step.want)
		}
	}
	gone := put("gone", 25_000)
	gone.Body = fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"delete","record":{"id":%q}}`, f.org, id)
	f.invoke(t, gone)
	if f.product(t, id) == nil {
		t.Error("a delete that was sent earlier deleted what was put later")
	}
}
