package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/queue"
)

// refusalsOf returns what ingest refuses of a message, when nothing is stored.
func refusalsOf(body string) []commerce.Refusal {
	changes, refusals := commerce.ParseMessage([]byte(body))
	for _, c := range changes {
		_, err := commerce.Identify(c)
		if err == nil {
			_, err = commerce.Apply(nil, c, value.TimeOf(time.Now()))
		}
		if err != nil {
			refusals = append(refusals, commerce.Refuse(c, err))
		}
	}
	return refusals
}

// refuse puts what ingest refuses of a message where ingest puts it.
func (q *queues) refuse(ctx context.Context, messageID, body string) (refused int, err error) {
	refusals := refusalsOf(body)
	return len(refusals), queue.NewRejects(queue.New(q.client, q.dlqs["Records"])).Reject(ctx, messageID, refusals)
}

// refuses is refuse for what must be refused.
func (q *queues) refuses(t *testing.T, bodies ...string) {
	t.Helper()
	for i, body := range bodies {
		if refused, err := q.refuse(t.Context(), fmt.Sprint("m-", i), body); err != nil || refused == 0 {
			t.Fatalf("%s: %d refused, %v; want one at least", body, refused, err)
		}
	}
}

// nameless is the message of a product without a name, which is refused.
func nameless(org string, id value.ID) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q}}`, org, id)
}

// rejects runs the command, which must succeed, and returns what it prints.
func (q *queues) rejects(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := runCommand(t.Context(), append([]string{"rejects", "--data", q.data}, args...)...)
	if err != nil || stderr != "" {
		t.Fatalf("rejects %q: %v, %s", args, err, stderr)
	}
	return stdout
}

func TestLookingAtRefusedRecordsTakesNothing(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	const records = 35
	for range records {
		q.refuses(t, nameless(testOrganization, value.NewID()))
	}
	for _, args := range [][]string{{}, {"--json"}, {"--show", "7"}, {"--show", "100", "--json"}, {"--kind", "order"}} {
		got := q.rejects(t, args...)
		if visible, hidden := q.waiting(t, q.dlqs["Records"]); visible != records || hidden != 0 {
			t.Errorf("%q: %d wait and %d are hidden afterwards, want %d and 0", args, visible, hidden, records)
		}
		lines := map[string]int{"--show 7": 7 * 3, "--show 100 --json": records}[strings.Join(args, " ")]
		if lines > 0 && strings.Count(got, "\n") != lines {
			t.Errorf("%q: %d lines, want %d", args, strings.Count(got, "\n"), lines)
		}
	}
	messages, err := q.drain(t.Context(), q.dlqs["Records"])
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, m := range messages {
		var n int
		fmt.Sscan(m.Attributes["ApproximateReceiveCount"], &n)
		most = max(most, n)
	}
	// Each look is one receive of each message, and the last one this test's.
	if len(messages) != records || most != 6 {
		t.Errorf("%d messages, received up to %d times; want %d and 6", len(messages), most, records)
	}
}

func TestRejectsAreCountedByWhatIsWrongWithThem(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	org, other := testOrganization, value.NewID().String()
	for range 3 {
		q.refuses(t, nameless(org, value.NewID()))
	}
	id := value.NewID()
	q.refuses(t, nameless(other, id), "no JSON \u009b2J", `["no", "record"]`, `{"organizationId":7,"kind":null,"op":"put"}`,
		fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Tea","name":"Tea"}}`, other, id),
		fmt.Sprintf(`{"organizationId":%q,"records":[
			{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","items":[{"quantity":1,"unitPrice":1}]}},
			{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","items":[{"name":"a","quantity":1,"unitPrice":1},{"quantity":1,"unitPrice":1}]}},
			{"kind":"planet","op":"put","record":{"id":%q}}]}`, org, value.NewID(), value.NewID(), value.NewID()))
	// A message that ingest could not process, moved here by SQS, has no reason.
	if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(q.dlqs["Records"]), MessageBody: aws.String(fmt.Sprintf(`{"organizationId":%q,"records":[]}`, other)),
	}); err != nil {
		t.Fatal(err)
	}
	var counts struct {
		Messages int  `json:"messages"`
		Complete bool `json:"complete"`
		Groups   []struct {
			Holds, OrganizationID, Kind, Reason, Field string
			Messages                                   int
			Oldest                                     time.Time
		} `json:"groups"`
	}
	if err := json.Unmarshal([]byte(q.rejects(t, "--json")), &counts, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range counts.Groups {
		got = append(got, strings.Join([]string{g.Holds, g.OrganizationID, g.Kind, g.Reason, g.Field, fmt.Sprint(g.Messages)}, "|"))
		if age := time.Since(g.Oldest); age < 0 || age > time.Minute {
			t.Errorf("%v: the oldest is of %s", g, g.Oldest)
		}
	}
	want := []string{
		"record|" + org + "|product|validation_failed|record.name|3",
		"record|" + org + "|order|validation_failed|record.items[].name|2",
		"record|" + org + "|planet|validation_failed|kind|1",
		"record|" + other + "|product|validation_failed|record.name|2",
		"record|7|null|validation_failed|organizationId|1",
		"not JSON|||malformed_json||1",
		"no record|||validation_failed|body|1",
		"many records|" + other + "||||1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if counts.Messages != 12 || !counts.Complete || !slices.Equal(got, want) {
		t.Errorf("%d messages, complete %t\n got %q\nwant %q", counts.Messages, counts.Complete, got, want)
	}
}

func TestRefusedRecordsAreSentBackAsTheyAreAndOthersStay(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	other := value.NewID().String()
	var bodies []string
	for i := range 24 {
		org := []string{testOrganization, other}[i%2]
		bodies = append(bodies, nameless(org, value.NewID()))
	}
	q.refuses(t, append([]string{"no JSON", `[1]`}, bodies...)...)
	for _, step := range []struct {
		args string
		want string
		sent int
	}{
		{"--replay --kind order", "sent 0 records to ", 0},
		{"--replay --reason version_conflict", "sent 0 records to ", 0},
		{"--replay --organization " + strings.ToUpper(other) + " --limit 5", "sent 5 records to ", 5},
		{"--replay --organization " + other + " --kind product --reason validation_failed", "sent 7 records to ", 7},
		{"--replay", "sent 12 records to ", 12},
		{"--replay", "sent 0 records to ", 0},
	} {
		got := q.rejects(t, strings.Fields(step.args)...)
		back, err := q.drain(t.Context(), q.file.RecordsQueueURL)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got, step.want) || len(back) != step.sent {
			t.Errorf("%s: got %q and %d messages, want %q and %d", step.args, got, len(back), step.want, step.sent)
		}
		if unfiltered := step.args == "--replay"; unfiltered != strings.HasSuffix(got, "\nleft 2 messages without a single record\n") {
			t.Errorf("%s: got %q on what it left", step.args, got)
		}
		for _, m := range back {
			at := slices.Index(bodies, *m.Body)
			if at < 0 || !strings.Contains(*m.Body, m.Attributes["MessageGroupId"]) || m.Attributes["MessageGroupId"] == "" {
				t.Fatalf("%s: sent %s in group %q, want a refused record in its organization's", step.args, *m.Body, m.Attributes["MessageGroupId"])
			}
			bodies = slices.Delete(bodies, at, at+1)
		}
	}
	if visible, hidden := q.waiting(t, q.dlqs["Records"]); visible != 2 || hidden != 0 || len(bodies) != 0 {
		t.Errorf("%d messages wait, %d are hidden, %d records were not sent; want 2, 0 and 0", visible, hidden, len(bodies))
	}
}

func TestWhatIsRefusedAgainMeanwhileIsNotSentWithoutEnd(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	const records = 40
	for range records {
		q.refuses(t, nameless(testOrganization, value.NewID()))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.ingestNothing(ctx) }()
	got := q.rejects(t, "--replay")
	if !strings.HasPrefix(got, fmt.Sprintf("sent %d records to ", records)) {
		t.Errorf("got %q, want each sent once", got)
	}
	await(t, "the refusals", func() bool {
		visible, hidden := q.waiting(t, q.dlqs["Records"])
		return visible == records && hidden == 0
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// ingestNothing refuses whatever comes in at once, until it fails, as it does
// when the context ends.
func (q *queues) ingestNothing(ctx context.Context) error {
	for {
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &q.file.RecordsQueueURL, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		})
		if err != nil {
			return err
		}
		for _, m := range out.Messages {
			if _, err := q.refuse(ctx, *m.MessageId, *m.Body); err != nil {
				return err
			}
			if _, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.file.RecordsQueueURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return err
			}
		}
	}
}

func TestAQueueWithARedrivePolicyIsNotLookedInto(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q.file.DeliveriesQueueURL, MessageBody: aws.String("x")}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"rejects", "--dlq-url", q.file.DeliveriesQueueURL},
		{"replay", "--dry-run", "--queue-url", q.file.DeliveriesQueueURL, "--endpoint", q.file.SQSEndpoint},
	} {
		_, stderr, err := runCommand(t.Context(), append(args, "--data", q.data)...)
		if err == nil || !strings.Contains(stderr, "has a redrive policy") {
			t.Errorf("%q: got %q, want a word on the policy", args, stderr)
		}
	}
	found, err := q.drain(t.Context(), q.file.DeliveriesQueueURL)
	if err != nil || len(found) != 1 || found[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("the message: got %v, %v; want it never received before", found, err)
	}
}

func TestARecordIsAppliedOnceItIsSentBack(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	dead := strings.Replace(s.RecordsQueueURL, "RecordsQueue", "RecordsDLQ", 1)
	s.send(t, nameless(s.OrganizationID, value.NewID()))
	await(t, "the refused record", func() bool { return s.messages(t, dead) == 1 })
	s.sendTo(t, dead, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Pot"}}`, s.OrganizationID, value.NewID()))
	if got := s.commerce(t, "rejects"); !strings.Contains(got, "  product  validation_failed  record.name  1  ") || !strings.HasSuffix(got, "\n2 messages\n") {
		t.Errorf("rejects: got %q", got)
	}
	if got := s.commerce(t, "rejects", "--show", "1", "--reason", "validation_failed"); !strings.Contains(got, "\n  validation_failed record.name: ") {
		t.Errorf("--show: got %q", got)
	}
	if got := s.commerce(t, "rejects", "--replay"); !strings.HasPrefix(got, "sent 2 records to "+s.RecordsQueueURL+"\n") {
		t.Errorf("--replay: got %q", got)
	}
	await(t, "the good record", func() bool { return s.total(t, "/api/products") == 1 })
	await(t, "the bad record where it was", func() bool { return s.messages(t, dead) == 1 })
	s.stop(t)
}

// Messages of more than 32 KiB come back by the imports queue, and one of the
// full size has no room to say which message it was.
func TestARefusedRecordOfAnySizeIsSentBackOnce(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	dead := strings.Replace(s.RecordsQueueURL, "RecordsQueue", "RecordsDLQ", 1)
	for i, row := range []struct {
		kind string
		size int
	}{{"product", 40 << 10}, {"category", queue.MaxMessage}} {
		there := func() bool { return s.messages(t, dead) == i+1 }
		body := fmt.Sprintf(`{"organizationId":%q,"kind":%q,"op":"put","record":{"id":%q,"slug":""}}`, s.OrganizationID, row.kind, value.NewID())
		s.send(t, strings.Replace(body, `""`, `"`+strings.Repeat("x", row.size-len(body))+`"`, 1))
		await(t, "the refused record", there)
		// A run ends when no message comes for a second, which may be before
		// the record is back.
		await(t, "a run that sees the record come back", func() bool {
			got := s.commerce(t, "rejects", "--replay", "--kind", row.kind)
			if !strings.HasPrefix(got, "sent 1 record to ") {
				t.Fatalf("%d bytes: got %q, want it sent once", row.size, got)
			}
			await(t, "the record where it was", there)
			return strings.HasSuffix(got, "\n1 record came back refused\n")
		})
	}
	s.stop(t)
}

// scriptRefuse puts what is refused of the messages of a file, one a line,
// where ingest puts it.
func scriptRefuse(ts *testscript.TestScript, _ bool, args []string) {
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		_, err := ts.Value("queues").(*queues).refuse(context.Background(), "m-1", strings.TrimSuffix(line, "\n"))
		ts.Check(err)
	}
}
