package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

const (
	recordsQueue = "RecordsQueue"
	recordsDLQ   = "RecordsDLQ"
)

// refuse puts what ingest refuses of a message, when nothing is stored, where
// ingest puts it. It may run beside the test.
func (s state) refuse(ctx context.Context, messageID, body string) (refused int, err error) {
	changes, refusals := commerce.ParseMessage([]byte(body))
	for _, c := range changes {
		_, err := commerce.Identify(c)
		if err == nil {
			_, err = commerce.Apply(nil, c, s.Now())
		}
		if err != nil {
			refusals = append(refusals, commerce.Refuse(c, err))
		}
	}
	return len(refusals), queue.NewRejects(s.Queues().Queue(recordsDLQ)).Reject(ctx, messageID, refusals)
}

// refuses is refuse for what must be refused.
func (s state) refuses(t *testing.T, bodies ...string) {
	t.Helper()
	for i, body := range bodies {
		if refused, err := s.refuse(t.Context(), fmt.Sprint("m-", i), body); err != nil || refused == 0 {
			t.Fatalf("%s: %d refused, %v; want one at least", body, refused, err)
		}
	}
}

// nameless is the message of a product without a name, which is refused.
func nameless(org value.ID) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q}}`, org, value.NewID())
}

func TestLookingAtRefusedRecordsTakesNothing(t *testing.T) {
	t.Parallel()
	s := newState(t)
	const records = 35
	for range records {
		s.refuses(t, nameless(s.Org))
	}
	shown := 0
	show := func(limit int) error {
		return ops.ShowRejects(t.Context(), s.scan(recordsDLQ, limit), ops.RejectFilter{}, func(*ops.Reject) error {
			shown++
			return nil
		})
	}
	_, err := ops.CountRejects(t.Context(), s.scan(recordsDLQ, 0), ops.RejectFilter{Kind: "order"})
	if err := errors.Join(err, show(7), show(100)); err != nil || shown != 7+records {
		t.Errorf("showed %d records, %v; want %d", shown, err, 7+records)
	}
	if visible, hidden := s.waiting(t.Context(), t, recordsDLQ); visible != records || hidden != 0 {
		t.Errorf("%d wait and %d are hidden afterwards, want %d and 0", visible, hidden, records)
	}
	most := ""
	for _, m := range s.take(t, recordsDLQ) {
		most = max(most, m.Attributes["ApproximateReceiveCount"])
	}
	if most != "4" { // each look is one receive of each message, and the last one this test's
		t.Errorf("received up to %s times, want 4", most)
	}
}

func TestRejectsAreCountedByWhatIsWrongWithThem(t *testing.T) {
	t.Parallel()
	s, other := newState(t), value.NewID()
	s.refuses(t, nameless(s.Org), nameless(s.Org), nameless(s.Org), nameless(other),
		"no JSON \u009b2J", `["no", "record"]`, `{"organizationId":7,"kind":null,"op":"put"}`,
		fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Tea","name":"Tea"}}`, other, value.NewID()),
		fmt.Sprintf(`{"organizationId":%q,"records":[
			{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","items":[{"quantity":1,"unitPrice":1}]}},
			{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","items":[{"name":"a","quantity":1,"unitPrice":1},{"quantity":1,"unitPrice":1}]}},
			{"kind":"planet","op":"put","record":{"id":%q}}]}`, s.Org, value.NewID(), value.NewID(), value.NewID()))
	// A message that ingest could not process, moved here by SQS, has no reason.
	s.send(t, recordsDLQ, fmt.Sprintf(`{"organizationId":%q,"records":[]}`, other))
	scan := s.scan(recordsDLQ, 0)
	counts, err := ops.CountRejects(t.Context(), scan, ops.RejectFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	messages := 0
	for _, g := range counts.Sorted(ops.RejectGroup.Compare) {
		messages += g.Messages
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s|%d", g.Group.Holds, g.Group.OrganizationID, g.Group.Kind, g.Group.Reason, g.Group.Field, g.Messages))
		if age := time.Since(g.Oldest); age < 0 || age > time.Minute {
			t.Errorf("%v: the oldest is of %s", g, g.Oldest)
		}
	}
	want := []string{
		"record|" + s.Org.String() + "|product|validation_failed|record.name|3",
		"record|" + s.Org.String() + "|order|validation_failed|record.items[].name|2",
		"record|" + s.Org.String() + "|planet|validation_failed|kind|1",
		"record|" + other.String() + "|product|validation_failed|record.name|2",
		"record|7|null|validation_failed|organizationId|1",
		"not JSON|||malformed_json||1",
		"no record|||validation_failed|body|1",
		"many records|" + other.String() + "||||1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if _, complete := scan.Seen(); messages != 12 || !complete || !slices.Equal(got, want) {
		t.Errorf("%d messages, complete %t\n got %q\nwant %q", messages, complete, got, want)
	}
}

func TestRefusedRecordsAreSentBackAsTheyAreAndOthersStay(t *testing.T) {
	t.Parallel()
	s := newState(t)
	other := value.NewID()
	var bodies []string
	for i := range 24 {
		bodies = append(bodies, nameless([]value.ID{s.Org, other}[i%2]))
	}
	s.refuses(t, append([]string{"no JSON", `[1]`}, bodies...)...)
	for _, step := range []struct {
		filter        ops.RejectFilter
		limit         int
		sent, without int
	}{
		{ops.RejectFilter{Kind: "order"}, 0, 0, 0},
		{ops.RejectFilter{Reason: "version_conflict"}, 0, 0, 0},
		{ops.RejectFilter{OrganizationID: strings.ToUpper(other.String())}, 5, 5, 0},
		{ops.RejectFilter{OrganizationID: other.String(), Kind: "product", Reason: "validation_failed"}, 0, 7, 0},
		{ops.RejectFilter{}, 0, 12, 2},
		{ops.RejectFilter{}, 0, 0, 2},
	} {
		r := &ops.Resend{Client: s.Queues().Client, QueueURL: s.Queues().URL(recordsQueue), Filter: step.filter}
		err := r.Run(t.Context(), s.scan(recordsDLQ, step.limit))
		back := s.take(t, recordsQueue)
		if err != nil || r.Sent != step.sent || r.WithoutRecord != step.without || len(back) != step.sent {
			t.Errorf("%+v: sent %d, %d messages came, left %d, %v", step, r.Sent, len(back), r.WithoutRecord, err)
		}
		for _, m := range back {
			at, group := slices.Index(bodies, m.Body), m.Attributes["MessageGroupId"]
			if at < 0 || group == "" || !strings.Contains(m.Body, group) {
				t.Fatalf("%+v: sent %s in group %q, want a refused record in its organization's", step, m.Body, group)
			}
			bodies = slices.Delete(bodies, at, at+1)
		}
	}
	if visible, hidden := s.waiting(t.Context(), t, recordsDLQ); visible != 2 || hidden != 0 || len(bodies) != 0 {
		t.Errorf("%d messages wait, %d are hidden, %d records were not sent; want 2, 0 and 0", visible, hidden, len(bodies))
	}
}

func TestWhatIsRefusedAgainMeanwhileIsNotSentWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newState(t)
	const records = 40
	for range records {
		s.refuses(t, nameless(s.Org))
	}
	// One of the full size has no room to say which message it was.
	large := fmt.Sprintf(`{"organizationId":%q,"kind":"category","op":"put","record":{"id":%q,"slug":"`, s.Org, value.NewID())
	s.refuses(t, large+strings.Repeat("x", queue.MaxMessage-len(large)-3)+`"}}`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.ingestNothing(ctx) }()
	r := &ops.Resend{Client: s.Queues().Client, QueueURL: s.Queues().URL(recordsQueue)}
	if err := r.Run(t.Context(), s.scan(recordsDLQ, 0)); err != nil || r.Sent != records+1 {
		t.Errorf("sent %d, %v; want each of %d once", r.Sent, err, records+1)
	}
	for visible := 0; visible != records+1; {
		visible, _ = s.waiting(t.Context(), t, recordsDLQ)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// ingestNothing refuses whatever comes in at once, until it fails, as it does
// when the context ends.
func (s state) ingestNothing(ctx context.Context) error {
	client, url := s.Queues().Client, s.Queues().URL(recordsQueue)
	for {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			return err
		}
		for _, m := range out.Messages {
			if _, err := s.refuse(ctx, *m.MessageId, *m.Body); err != nil {
				return err
			}
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return err
			}
		}
	}
}

func TestAQueueWithARedrivePolicyIsNotLookedInto(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.send(t, servicetest.MainQueue, "x")
	_, err := ops.CountRejects(t.Context(), s.scan(servicetest.MainQueue, 0), ops.RejectFilter{})
	if err == nil || !strings.Contains(err.Error(), "has a redrive policy") {
		t.Errorf("got %v, want a word on the policy", err)
	}
	if found := s.take(t, servicetest.MainQueue); len(found) != 1 || found[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("the message: got %v; want it never received before", found)
	}
}
