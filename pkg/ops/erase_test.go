package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// person is a customer with an order, an invoice and a deleted order, and the
// texts that tell of it.
type person struct {
	id, order, invoice, deleted value.ID
	name, email                 string
}

func newPerson(name string) person {
	return person{value.NewID(), value.NewID(), value.NewID(), value.NewID(), name, name + "@example.com"}
}

// stores has the functions process what the person's records make: items, lists,
// deliveries, a receipt, a refused record and a parked change.
func (s state) stores(t *testing.T, p person) {
	t.Helper()
	s.handle(t, s.apply(t, `"records":[
		{"kind":"customer","op":"put","record":{"id":%q,"firstName":%q,"email":%q}},
		{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","customerId":%q,"customerName":%q,"customerEmail":%q}},
		{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"2","currency":"EUR","customerId":%q}},
		{"kind":"invoice","op":"put","record":{"id":%q,"currency":"EUR","customerId":%q,"customerName":%q}}]`,
		p.id, p.name, p.email, p.order, p.id, p.name, p.email, p.deleted, p.id, p.invoice, p.id, p.name))
	s.handle(t, s.apply(t, `"kind":"order","op":"delete","record":{"id":%q}`, p.deleted))
	r := receipt.NewQueued(s.Org, p.order[:], 1, s.Now(), s.Now()).Complete([]receipt.Refusal{{RecordID: &p.order}}, s.Now())
	if err := s.Table.CreateReceipt(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s.refuses(t, fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q,"firstName":%q,"age":1}}`, s.Org, p.id, p.name))
	s.parks(t, []string{ops.Indexer}, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		Keys: map[string]events.DynamoDBAttributeValue{
			"PK": events.NewStringAttribute("ORG#" + s.Org.String() + "#CUSTOMER#0"), "SK": events.NewStringAttribute(p.id.String()),
		},
		NewImage: map[string]events.DynamoDBAttributeValue{"doc": events.NewStringAttribute(p.email)},
	}})
}

// erasure is one of the customer, or of the organization without one.
func (s state) erasure(t *testing.T, customer value.ID, dir string) *ops.Erasure {
	t.Helper()
	e := &ops.Erasure{
		Table: s.Table, Lists: s.lists(), Compactor: s.compactor(), Organization: s.Org, Customer: customer,
		Checkpoint: ops.Checkpoint(filepath.Join(dir, "erase.json")),
		Pause:      func(context.Context, time.Duration) error { return nil }, Progress: func(int) {},
	}
	if err := e.Open(); err != nil {
		t.Fatal(err)
	}
	return e
}

// erases erases everything, and returns how many messages and items.
func (s state) erases(t *testing.T, e *ops.Erasure) (messages, items int) {
	t.Helper()
	counts, err := e.Erase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range counts {
		items += n
	}
	found, _, err := e.EraseMessages(t.Context(), s.Queues().Client, s.status(t, ops.StatusReader{}), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range found {
		messages += n
	}
	if left, err := e.Left(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	return messages, items
}

// told returns the texts of the table's items.
func (s state) told(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, it := range s.items(t) {
		fmt.Fprint(&all, textsOf(&types.AttributeValueMemberM{Value: it}))
	}
	return all.String()
}

func textsOf(v types.AttributeValue) (texts []string) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return []string{v.Value}
	case *types.AttributeValueMemberB:
		return []string{string(v.Value)}
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			texts = append(texts, textsOf(e)...)
		}
	case *types.AttributeValueMemberM:
		for name, e := range v.Value {
			texts = append(append(texts, name), textsOf(e)...)
		}
	}
	return texts
}

// owned returns the organization's items, as text.
func (s state) owned(t *testing.T) (items []string) {
	t.Helper()
	for _, it := range s.items(t) {
		texts := textsOf(&types.AttributeValueMemberM{Value: it})
		slices.Sort(texts)
		if all := fmt.Sprint(texts); strings.Contains(all, s.Org.String()) {
			items = append(items, all)
		}
	}
	slices.Sort(items)
	return items
}

func TestEraseLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newState(t)
	other := s.neighbour(t)
	s.Endpoint(t, "*")
	other.Endpoint(t, "*")
	gone, stays := newPerson("quenby"), newPerson("tamsin")
	theirs := gone
	theirs.name, theirs.email = "ottoline", "ottoline@example.com"
	s.stores(t, gone)
	s.stores(t, stays)
	s.reindex(t)
	s.handle(t, s.apply(t, `"kind":"customer","op":"put","record":{"id":%q,"firstName":%q}`, gone.id, gone.name)) // in a tail
	other.stores(t, theirs)
	before, all := other.owned(t), s.owned(t)

	dir := t.TempDir()
	if found, err := s.erasure(t, gone.id, dir).Find(t.Context()); err != nil || found["record"] != 4 || found["receipt"] != 1 || found["delivery"] < 5 {
		t.Errorf("found %v, %v", found, err)
	}
	if diff := cmp.Diff(all, s.owned(t)); diff != "" {
		t.Errorf("a dry run has changed items:\n%s", diff)
	}
	if messages, _ := s.erases(t, s.erasure(t, gone.id, dir)); messages != 2 {
		t.Errorf("erased %d messages, want 2", messages)
	}
	if _, items := s.erases(t, s.erasure(t, gone.id, dir)); items != 0 {
		t.Errorf("erased %d items again, want none", items)
	}
	mine := fmt.Sprint(s.owned(t))
	for _, text := range []string{gone.name, gone.id.String(), gone.order.String(), gone.invoice.String(), gone.deleted.String()} {
		if strings.Contains(mine, text) {
			t.Errorf("%s is left", text)
		}
	}
	for _, text := range []string{stays.name, stays.email, stays.id.String(), stays.order.String(), stays.deleted.String()} {
		if !strings.Contains(mine, text) {
			t.Errorf("%s is gone", text)
		}
	}
	if lines := s.differs(t); len(lines) > 0 {
		t.Errorf("the lists differ: %q", lines)
	}

	if messages, _ := s.erases(t, s.erasure(t, value.ID{}, dir)); messages != 2 {
		t.Errorf("erased %d messages of the organization, want 2", messages)
	}
	if told := s.told(t); strings.Contains(told, s.Org.String()) || strings.Contains(told, s.App.String()) || strings.Contains(told, stays.name) {
		t.Error("the organization is left")
	}
	if diff := cmp.Diff(before, other.owned(t)); diff != "" {
		t.Errorf("another organization's items have changed:\n%s", diff)
	}
	for _, queue := range []string{recordsDLQ, servicetest.ParkQueue} {
		if n := len(s.take(t, queue)); n != 1 {
			t.Errorf("%d messages are in %s, want the other organization's", n, queue)
		}
	}
}

func TestAnErasureThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	gone, dir := newPerson("quenby"), t.TempDir()
	s.stores(t, gone)
	s.reindex(t)
	chunks := func() (n int) {
		for _, it := range s.items(t) {
			if text(it["SK"]) == "CHUNK" {
				n++
			}
		}
		return n
	}
	killed := errors.New("killed")
	during := s.erasure(t, gone.id, dir)
	ctx, kill := context.WithCancel(t.Context())
	during.Progress = func(int) { kill() } // after the first items
	if _, err := during.Erase(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("killed among the items: %v", err)
	}
	later := s.erasure(t, gone.id, dir)
	later.Pause = func(context.Context, time.Duration) error { return killed }
	if _, err := later.Erase(t.Context()); !errors.Is(err, killed) {
		t.Errorf("killed before the chunks: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "erase.json")); err != nil {
		t.Errorf("the ids are not kept: %v", err)
	}
	before := chunks()
	s.erases(t, s.erasure(t, gone.id, dir))
	if after := chunks(); after >= before {
		t.Errorf("%d chunks before and %d after, want fewer", before, after)
	}
	if told := s.told(t); strings.Contains(told, gone.id.String()) || strings.Contains(told, gone.order.String()) || strings.Contains(told, gone.name) {
		t.Error("the table has one of the ids or the name")
	}
	if lines := s.differs(t); len(lines) > 0 {
		t.Errorf("the lists differ: %q", lines)
	}
}

func TestEraseNamesWhatItLeaves(t *testing.T) {
	t.Parallel()
	s := newState(t)
	customer, guest, other := value.NewID(), value.NewID(), value.NewID()
	s.apply(t, `"kind":"customer","op":"put","record":{"id":%q}`, customer)
	s.apply(t, `"kind":"order","op":"put","record":{"id":%q,"orderNumber":"2","currency":"EUR","notes":"for %s"}`, guest, customer)
	manyOf := func(org value.ID) string {
		return fmt.Sprintf(`{"organizationId":%q,"records":[{"kind":"customer","op":"put","record":{"id":%q}},{"kind":"product","op":"put","record":{}}]}`, org, customer)
	}
	alone := fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q,"age":1}}`, s.Org, strings.ToUpper(customer.String()))
	s.send(t, recordsDLQ, manyOf(s.Org), manyOf(other), "{", alone)
	e := s.erasure(t, customer, t.TempDir())
	if _, err := e.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, mixed, err := e.EraseMessages(t.Context(), s.Queues().Client, s.status(t, ops.StatusReader{}), true)
	if err != nil || found[recordsDLQ] != 1 || mixed[recordsDLQ] != 1 {
		t.Errorf("erased %v, left %v with records of others, %v; want one of each", found, mixed, err)
	}
	if n := len(s.take(t, recordsDLQ)); n != 3 {
		t.Errorf("%d messages stay, want 3", n)
	}
	left, err := e.Left(t.Context())
	if want := []string{"order " + guest.String() + " names the customer, but not as its customerId"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %q, %v; want %q", left, err, want)
	}
}
