package ingest_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/sender"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

// unsigned takes the messages of every organization unsigned.
type unsigned struct{}

func (unsigned) Verify(context.Context, value.ID, string, string) (sender.Proof, error) {
	return sender.Proof{Valid: true}, nil
}

// signedHarness has sender keys in the real table, and the real queues.
type signedHarness struct {
	*harness
	box       *sealed.Box
	queues    *queuetest.Queues
	senders   *sender.Verifier
	now       time.Time
	throttled bool
}

func newSignedHarness(t *testing.T) *signedHarness {
	t.Helper()
	box, err := sealed.NewBox(make([]byte, sealed.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	f := &signedHarness{harness: newHarness(t), box: box, queues: queuetest.Start(t), now: start}
	f.senders = sender.NewVerifier(f, func(_ context.Context, text, purpose string) ([]byte, error) { return box.Open(text, purpose) },
		func() time.Time { return f.now })
	queueAt := f.queues.Queue
	f.ingester = ingest.New(f.table, f.senders, queue.NewRejects(queueAt("RecordsDLQ")),
		queue.NewRecords(queueAt("RecordsQueue"), queueAt("ImportsQueue")), func() time.Time { return f.now }, slog.New(slog.DiscardHandler))
	return f
}

// SenderKeys reads the table, unless that is throttled.
func (f *signedHarness) SenderKeys(ctx context.Context, org value.ID) (*sender.Keys, error) {
	if f.throttled {
		return nil, fault.Busy(errors.New("throttled"))
	}
	return f.table.SenderKeys(ctx, org)
}

// rotate makes a key of the organization and lets it act.
func (f *signedHarness) rotate(t *testing.T, org value.ID) (key []byte) {
	t.Helper()
	var text string
	err := dynamo.PutSenderKeys(t.Context(), f.table.Table, org, func(old *sender.Keys) (next *sender.Keys) {
		next, text = sender.Rotate(org, old, f.box.Seal, value.TimeOf(f.now))
		return next
	})
	if err != nil {
		t.Fatal(err)
	}
	if key, err = hex.DecodeString(text); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(sender.KeysMaxAge)
	return key
}

// send sends a body to the records queue, signed unless key is nil, as if it
// came in a batch with all the rest of the queue, and applies what the queues
// have. It returns how many messages failed.
func (f *signedHarness) send(t *testing.T, key []byte, bodies ...string) (failed int) {
	t.Helper()
	for _, body := range bodies {
		m := queue.Message{Body: body}
		if key != nil {
			m.Attributes = map[string]string{sender.Attribute: sender.Sign(key, body)}
		}
		if err := f.queues.Queue("RecordsQueue").Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"RecordsQueue", "ImportsQueue"} {
		batch := f.queues.Receive(t, name)
		failed += len(f.invoke(t, batch...))
		f.queues.Delete(t, name, batch...)
	}
	return failed
}

// refused takes the refused records out of their queue, by reason.
func (f *signedHarness) refused(t *testing.T) (reasons []string, messages []events.SQSMessage) {
	t.Helper()
	messages = f.queues.Receive(t, "RecordsDLQ")
	f.queues.Delete(t, "RecordsDLQ", messages...)
	for _, m := range messages {
		reasons = append(reasons, aws.ToString(m.MessageAttributes["reason"].StringValue))
	}
	return reasons, messages
}

func TestMessagesOfAnOrganizationWithSenderKeysNeedASignature(t *testing.T) {
	f, other := newSignedHarness(t), value.NewID()
	foreign := f.rotate(t, other)
	id, version := value.NewID(), 0
	check := func(what string, key []byte, want bool) {
		t.Helper()
		version++
		name := fmt.Sprint("Tea ", version)
		if failed := f.send(t, key, f.one(id, name, version)); failed != 0 {
			t.Errorf("%s: %d messages come again", what, failed)
		}
		p := f.product(t, id)
		if stored := p != nil && p.Name == name; stored != want {
			t.Errorf("%s: stored %t, want %t", what, stored, want)
		}
		reasons, messages := f.refused(t)
		if want && len(reasons) == 0 || !want && slices.Equal(reasons, []string{"signature_invalid"}) {
			return
		}
		t.Errorf("%s: refused for %q, %v", what, reasons, messages)
	}
	check("without keys, unsigned", nil, true)
	check("without keys, signed with another's", foreign, true)
	first := f.rotate(t, f.org)
	check("one key, unsigned", nil, false)
	check("one key, signed with another's", foreign, false)
	check("one key", first, true)
	second := f.rotate(t, f.org)
	check("two keys, the newer", second, true)
	check("two keys, the older", first, true)
	third := f.rotate(t, f.org)
	check("rotated again, the newest", third, true)
	check("rotated again, the key before", second, true)
	check("rotated again, the oldest", first, false)
	if removed, err := dynamo.RemoveSenderKeys(t.Context(), f.table.Table, f.org); err != nil || !removed {
		t.Fatalf("removed %t, %v", removed, err)
	}
	check("removed, within the minute", nil, false)
	f.now = f.now.Add(sender.KeysMaxAge)
	check("removed", nil, true)
	if removed, err := dynamo.RemoveSenderKeys(t.Context(), f.table.Table, f.org); err != nil || removed {
		t.Errorf("removed again: %t, %v", removed, err)
	}
}

func TestAThrottledReadOfTheKeysLeavesTheMessageInTheQueue(t *testing.T) {
	f, id := newSignedHarness(t), value.NewID()
	key := f.rotate(t, f.org)
	f.throttled = true
	for what, k := range map[string][]byte{"signed": key, "unsigned": nil} {
		if failed := f.send(t, k, f.one(id, what, 1)); failed != 1 || f.product(t, id) != nil {
			t.Errorf("%s: %d messages come again, stored %v; want 1 and nothing", what, failed, f.product(t, id))
		}
	}
	if reasons, _ := f.refused(t); len(reasons) != 0 {
		t.Errorf("refused for %q", reasons)
	}
	f.throttled = false
	if failed := f.send(t, key, f.one(id, "signed", 1)); failed != 0 || f.product(t, id) == nil {
		t.Errorf("later: %d messages come again, stored %v", failed, f.product(t, id))
	}
}

func TestAMovedMessageKeepsItsSignature(t *testing.T) {
	f := newSignedHarness(t)
	key := f.rotate(t, f.org)
	body, ids := f.load(400)
	if failed := f.send(t, nil, body); failed != 0 || f.product(t, ids[0]) != nil {
		t.Errorf("unsigned: %d messages come again, stored %v", failed, f.product(t, ids[0]))
	}
	reasons, messages := f.refused(t)
	if !slices.Equal(reasons, []string{"signature_invalid"}) || messages[0].Body != body {
		t.Fatalf("refused for %q, want once, and whole", reasons)
	}
	if failed := f.send(t, key, body); failed != 0 || f.product(t, ids[0]) == nil || f.product(t, ids[len(ids)-1]) == nil {
		t.Errorf("signed: %d messages come again, and the records are not stored", failed)
	}
}

func TestARefusedRecordOfASignedMessageCanBeSentAgain(t *testing.T) {
	f := newSignedHarness(t)
	key := f.rotate(t, f.org)
	nameless := func() string { return fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":"%s"}}`, value.NewID()) }
	org := `{"organizationId":"` + f.org.String() + `"`
	for what, body := range map[string]string{
		"one":                        org + "," + nameless()[1:],
		"many":                       org + `,"records":[` + nameless() + "," + nameless() + "]}",
		"one with a wrong envelope":  org + `,"kind":"product","op":"mend","record":{}}`,
		"many with wrong envelopes":  org + `,"records":[{"kind":"product","op":"mend","record":{}}]}`,
		"what is not of one message": org + `,"records":[{"organizationId":"x"}]}`,
	} {
		f.send(t, key, body)
		_, messages := f.refused(t)
		if len(messages) == 0 {
			t.Errorf("%s: nothing is refused", what)
		}
		for _, m := range messages {
			signature := aws.ToString(m.MessageAttributes[sender.Attribute].StringValue)
			if signature != sender.Sign(key, m.Body) {
				t.Errorf("%s: %s has the signature %q", what, m.Body, signature)
			}
		}
	}
	// Ingest signs nothing that was not signed.
	f.send(t, nil, org+`,"records":[`+nameless()+"]}", "no JSON")
	_, messages := f.refused(t)
	for _, m := range messages {
		if signature, has := m.MessageAttributes[sender.Attribute]; has {
			t.Errorf("%s has the signature %q", m.Body, aws.ToString(signature.StringValue))
		}
	}
	if len(messages) != 2 {
		t.Errorf("%d messages are refused, want 2", len(messages))
	}
}

func TestSignedAndUnsignedMessagesOfABatchStayApart(t *testing.T) {
	f, good, bad := newSignedHarness(t), value.NewID(), value.NewID()
	key := f.rotate(t, f.org)
	open := value.NewID() // an organization without keys
	signed := f.one(good, "Signed", 1)
	free := strings.Replace(f.one(good, "Free", 1), f.org.String(), open.String(), 1)
	batch := []events.SQSMessage{
		{MessageId: "bad", Body: f.one(bad, "Bad", 1)},
		{MessageId: "free", Body: free},
		{MessageId: "good", Body: signed, MessageAttributes: map[string]events.SQSMessageAttribute{
			sender.Attribute: {DataType: "String", StringValue: aws.String(sender.Sign(key, signed))},
		}},
		// A valid signature does not go over to another message.
		{MessageId: "copied", Body: f.one(good, "Copied", 2), MessageAttributes: map[string]events.SQSMessageAttribute{
			sender.Attribute: {DataType: "String", StringValue: aws.String(sender.Sign(key, signed))},
		}},
	}
	if stay := f.invoke(t, batch...); len(stay) != 0 {
		t.Errorf("%q come again", stay)
	}
	if p := f.product(t, good); p == nil || p.Name != "Signed" || f.product(t, bad) != nil {
		t.Errorf("the signed record is %v, the unsigned %v", p, f.product(t, bad))
	}
	if stored, err := f.table.Record(t.Context(), open, commerce.KindProduct, good); err != nil || stored == nil {
		t.Errorf("the record of the organization without keys is %v, %v", stored, err)
	}
	if reasons, _ := f.refused(t); !slices.Equal(reasons, []string{"signature_invalid", "signature_invalid"}) {
		t.Errorf("refused for %q", reasons)
	}
}
