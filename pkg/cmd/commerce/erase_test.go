//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/local/queueserver"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/queue"
)

// erase runs the command without its waits, and returns what it prints and its
// exit code.
func (s *service) erase(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	return erase(t, nil, append([]string{"--data", s.data, "--organization", s.OrganizationID}, args...)...)
}

// erase runs the command, whose waits end with an error.
func erase(t *testing.T, waited error, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := makeEraseCommand(func(context.Context, time.Duration) error { return waited })
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintf(&out, "commerce: %v\n", err)
	}
	return out.String(), exitCode(err)
}

// export returns the organization's export.
func (s *service) export(t *testing.T) string {
	t.Helper()
	return s.commerce(t, "export", "--organization", s.OrganizationID, "--to", "-")
}

// person is a customer with an order, an invoice and a deleted order, and the
// texts that tell of it.
type person struct {
	id, order, invoice, deleted value.ID
	name, email                 string
}

// stores sends the person's records, and waits for the order's webhook.
func (s *service) stores(t *testing.T, p person) {
	t.Helper()
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[
		{"kind":"customer","op":"put","record":{"id":%q,"firstName":%q,"email":%q}},
		{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","customerId":%q,"customerName":%q,"customerEmail":%q}},
		{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"2","currency":"EUR","customerId":%q}},
		{"kind":"invoice","op":"put","record":{"id":%q,"currency":"EUR","customerId":%q,"customerName":%q}}]}`,
		s.OrganizationID, p.id, p.name, p.email, p.order, p.id, p.name, p.email, p.deleted, p.id, p.invoice, p.id, p.name))
	order := fmt.Sprintf("/api/orders/%s", p.deleted)
	await(t, order, func() bool {
		resp, _ := s.do(t, http.MethodGet, order, "", map[string]string{"X-API-Key": s.APIKey})
		return resp.StatusCode == http.StatusOK
	})
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"delete","record":{"id":%q}}`, s.OrganizationID, p.deleted))
	// A record that is refused, and a change that nobody could process.
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q,"firstName":%q,"age":1}}`, s.OrganizationID, p.id, p.name))
	park := queue.NewPark(queue.New(s.sqs(t), s.parkURL(t)))
	if err := park.Park(t.Context(), "indexer", events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		Keys: map[string]events.DynamoDBAttributeValue{
			"PK": events.NewStringAttribute("ORG#" + s.OrganizationID + "#CUSTOMER#0"), "SK": events.NewStringAttribute(p.id.String()),
		},
		NewImage: map[string]events.DynamoDBAttributeValue{"doc": events.NewStringAttribute(p.email)},
	}}, errors.New("no reason")); err != nil {
		t.Fatal(err)
	}
}

func (s *service) parkURL(t *testing.T) string {
	t.Helper()
	out, err := s.sqs(t).GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("ParkQueue")})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

// settle waits until the stream and the deliveries are through.
func (s *service) settle(t *testing.T, customers, orders, deliveries int) {
	t.Helper()
	var found [3]int
	await(t, "lists and webhooks", func() bool {
		time.Sleep(200 * time.Millisecond) // the user's rate limit is 600 a minute
		var history page
		s.history(t, "/developers/webhooks/events?status=DELIVERED", &history)
		found = [3]int{s.total(t, "/api/customers"), s.total(t, "/api/orders"), history.Meta.Total}
		return found == [3]int{customers, orders, deliveries}
	})
}

// files are what the stopped service keeps, as they are once the stream and the
// queues have forgotten what they forget by themselves, and the table server has
// compacted its file.
func (s *ownService) files(t *testing.T) string {
	t.Helper()
	rewriteJournal(t, filepath.Join(s.data, "queues"))
	var all strings.Builder
	err := filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		if strings.HasSuffix(path, ".db") {
			vacuum(t, path)
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// rewriteJournal has the queue server replace its journal by one of what the
// queues hold, as it does when the journal has grown.
func rewriteJournal(t *testing.T, dir string) {
	t.Helper()
	server, err := queueserver.Open(dir, &queueserver.Config{Logger: slog.New(slog.DiscardHandler), CompactBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(server.Handler())
	client, err := newSQSClient(t.Context(), front.URL)
	if err == nil {
		_, err = client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("written-" + value.NewID().String())})
	}
	front.Close()
	if err := errors.Join(err, server.Close()); err != nil {
		t.Fatal(err)
	}
}

// vacuum removes the stream, which forgets after 24 hours in AWS, and what is
// deleted from the file of tables.
func vacuum(t *testing.T, path string) {
	t.Helper()
	const program = `import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("DELETE FROM _stream_records")
db.execute("VACUUM")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")`
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", program, path).CombinedOutput(); err != nil {
		t.Fatalf("vacuum: %v, %s", err, out)
	}
}

func TestEraseLeavesNothingInTheFiles(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import sqlite3").Run(); err != nil {
		t.Skip("needs python3 with sqlite3")
	}
	own := newOwnService(t)
	own.start(t)
	a, b := own.service.newOrganization(t), own.service.newOrganization(t)
	gone := person{value.NewID(), value.NewID(), value.NewID(), value.NewID(), "Quenby", "quenby@example.com"}
	stays := person{value.NewID(), value.NewID(), value.NewID(), value.NewID(), "Tamsin", "tamsin@example.com"}
	theirs := person{gone.id, gone.order, gone.invoice, gone.deleted, "Ottoline", "ottoline@example.com"}
	a.subscribe(t, "*")
	b.subscribe(t, "*")
	a.stores(t, gone)
	a.stores(t, stays)
	b.stores(t, theirs)
	const each = 5 // webhooks
	a.settle(t, 2, 2, 2*each)
	b.settle(t, 1, 1, each)
	own.commerce(t, "reindex")
	before, other := a.export(t), b.export(t)

	customer := []string{"--customer", gone.id.String()}
	out, code := a.erase(t, customer...)
	if code != 0 || !strings.Contains(out, "nothing was erased") || a.export(t) != before {
		t.Fatalf("a dry run: code %d, %s", code, out)
	}
	out, code = a.erase(t, append(customer, "--yes")...)
	if code != 0 || !strings.Contains(out, "nothing is left") {
		t.Fatalf("erase: code %d, %s", code, out)
	}
	if out, code := a.erase(t, append(customer, "--yes")...); code != 0 || strings.Contains(out, "record") {
		t.Errorf("erase again: code %d, %s", code, out)
	}
	after := a.export(t)
	for line := range strings.Lines(before) {
		erased := strings.Contains(line, gone.id.String()) || strings.Contains(line, gone.deleted.String())
		if !strings.HasPrefix(line, `{"records"`) && strings.Contains(after, line) == erased {
			t.Errorf("erased %t: %s", erased, line)
		}
	}
	a.settle(t, 1, 1, each)
	if out := own.commerce(t, "verify"); !strings.Contains(out, "no differences") {
		t.Error(out)
	}
	if b.export(t) != other {
		t.Error("another organization's records have changed")
	}
	own.stop(t)
	files := own.files(t)
	for _, text := range []string{gone.name, gone.email} {
		if n := strings.Count(files, text); n > 0 {
			t.Errorf("%s is in the files %d times", text, n)
		}
	}
	for _, text := range []string{stays.name, stays.email, stays.id.String(), theirs.email} {
		if !strings.Contains(files, text) {
			t.Errorf("%s is not in the files any more", text)
		}
	}

	own.start(t)
	out, code = a.erase(t, "--yes")
	if code != 0 || !strings.Contains(out, "nothing is left") {
		t.Fatalf("erase: code %d, %s", code, out)
	}
	if b.export(t) != other {
		t.Error("another organization's records have changed")
	}
	b.settle(t, 1, 1, each)
	own.stop(t)
	files = own.files(t)
	for _, text := range []string{a.OrganizationID, a.ApplicationID, stays.name, stays.email, stays.id.String(), stays.order.String()} {
		if n := strings.Count(files, text); n > 0 {
			t.Errorf("%s is in the files %d times", text, n)
		}
	}
}

// newErasable is a table with a customer and an order of the organization a, in
// the index too, beside queues.
func newErasable(t *testing.T, a value.ID) (s *tableHarness, q *queues, customer, order value.ID) {
	t.Helper()
	s, q = newTableHarness(t), newQueues(t)
	info := q.file
	info.OrganizationID, info.DynamoDBEndpoint, info.TableName = s.info.OrganizationID, s.info.DynamoDBEndpoint, s.info.TableName
	if err := runner.WriteInfo(s.data, &info); err != nil {
		t.Fatal(err)
	}
	customer, order = value.NewID(), value.NewID()
	s.store(t, a, 2)
	s.apply(t, fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q}}`, a, customer))
	s.apply(t, fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","customerId":%q}}`, a, order, customer))
	s.reindex(t)
	return s, q, customer, order
}

// has reports whether an item of the table has the text in a key or a string.
func (s *tableHarness) has(t *testing.T, wanted string) bool {
	t.Helper()
	for _, it := range s.items(t) {
		for _, v := range it {
			if strings.Contains(text(v), wanted) {
				return true
			}
		}
	}
	return false
}

func TestAnInterruptedErasureGoesOn(t *testing.T) {
	t.Parallel()
	a, _ := twoOrganizations()
	s, _, customer, order := newErasable(t, a)
	other := value.NewID()
	for _, id := range []value.ID{customer, order, other} {
		now := value.TimeOf(time.Now())
		r := receipt.NewQueued(a, id[:], 1, now, now).Complete([]receipt.Refusal{{RecordID: &id}}, now)
		if err := s.table.CreateReceipt(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--data", s.data, "--organization", a.String(), "--customer", customer.String(), "--yes"}
	out, code := erase(t, context.Canceled, args...)
	if code != exitTrouble || !strings.Contains(out, "give the same command again to go on") {
		t.Fatalf("interrupted: code %d, %s", code, out)
	}
	kept, err := filepath.Glob(filepath.Join(s.data, "erase-*.json"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept files: %v, %v; want one", kept, err)
	}
	chunks := func() (n int) {
		for _, it := range s.items(t) {
			if text(it["SK"]) == "CHUNK" {
				n++
			}
		}
		return n
	}
	before := chunks()
	out, code = erase(t, nil, args...)
	if code != 0 || !strings.Contains(out, "nothing is left") {
		t.Fatalf("again: code %d, %s", code, out)
	}
	if after := chunks(); after >= before {
		t.Errorf("%d chunks before and %d after, want fewer", before, after)
	}
	if s.has(t, customer.String()) || s.has(t, order.String()) || !s.has(t, other.String()) {
		t.Error("the table has one of the ids, or lacks the receipt of another record")
	}
	if kept, _ := filepath.Glob(filepath.Join(s.data, "erase-*.json")); len(kept) > 0 {
		t.Errorf("the erased ids are still in %v", kept)
	}
	if got, code := s.verify(t, nothing); code != 0 {
		t.Error(got)
	}
}

func TestEraseNamesWhatItLeaves(t *testing.T) {
	t.Parallel()
	a, b := twoOrganizations()
	s, q, customer, _ := newErasable(t, a)
	guest := value.NewID()
	s.apply(t, fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"2","currency":"EUR","notes":"for %s"}}`, a, guest, customer))
	body := func(org value.ID) string {
		return fmt.Sprintf(`{"organizationId":%q,"records":[{"kind":"customer","op":"put","record":{"id":%q}},{"kind":"product","op":"put","record":{}}]}`, org, customer)
	}
	for _, text := range []string{body(a), body(b), "{", fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q,"age":1}}`, a, strings.ToUpper(customer.String()))} {
		dlq := q.dlqs["Records"]
		if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &dlq, MessageBody: &text}); err != nil {
			t.Fatal(err)
		}
	}
	out, code := erase(t, nil, "--data", s.data, "--organization", a.String(), "--customer", customer.String(), "--yes")
	for _, want := range []string{
		"message in RecordsDLQ  1\n", "1 message in RecordsDLQ with records of others too: redrive them first",
		"order " + guest.String() + " names the customer, but not as its customerId", "commerce: not everything is erased",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q", out, want)
		}
	}
	if left, err := q.drain(t.Context(), q.dlqs["Records"]); err != nil || len(left) != 3 || code != exitFound {
		t.Errorf("code %d, %d messages, %v; want code 1, and 3 messages", code, len(left), err)
	}
}

func TestEraseKeepsTheItemsOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	a, b := twoOrganizations()
	s, q, _, _ := newErasable(t, a)
	// The other organization names a record as the first one is named.
	s.apply(t, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"of %s"}}`, b, a, a))
	_, before := s.exported(t, b)
	dlq, parked := q.dlqs["Records"], fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q}}`, b, a)
	if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &dlq, MessageBody: &parked}); err != nil {
		t.Fatal(err)
	}
	out, code := erase(t, nil, "--data", s.data, "--organization", a.String(), "--yes")
	if code != 0 || !strings.Contains(out, "nothing is left") {
		t.Fatalf("code %d, %s", code, out)
	}
	if _, after := s.exported(t, b); after != before {
		t.Error("the other organization's records have changed")
	}
	if left, err := q.drain(t.Context(), dlq); err != nil || len(left) != 1 {
		t.Errorf("%d messages of the other organization, %v; want 1", len(left), err)
	}
	for _, it := range s.items(t) {
		if strings.HasPrefix(text(it["PK"]), "ORG#"+a.String()) || strings.HasPrefix(text(it["PK"]), "IDX#"+a.String()) {
			t.Errorf("%s %s is left", text(it["PK"]), text(it["SK"]))
		}
	}
}

func TestEraseAsksForWhatItNeeds(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--organization: required"},
		{[]string{"--organization", "acme"}, "--organization must be a UUID"},
		{[]string{"--organization", testOrganization, "--customer", "ann"}, "--customer must be a UUID"},
		{[]string{"--organization", testOrganization, "--table", "t"}, "name the queues with --stack or --queue-url"},
		{[]string{"--organization", testOrganization, "--stack", "s", "--queue-url", "u"}, "--stack names all queues"},
	} {
		out, code := erase(t, nil, append([]string{"--data", s.data}, c.args...)...)
		if code != exitTrouble || !strings.Contains(out, c.want) {
			t.Errorf("%q: code %d, %q; want %d, %q", c.args, code, out, exitTrouble, c.want)
		}
	}
}
