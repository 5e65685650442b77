package ops_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/webhook/source"
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
	shop := &source.Source{ID: value.NewID(), OrganizationID: s.Org, UpdatedAt: s.Now()}
	if err := s.Table.CreateSource(t.Context(), shop, nil); err != nil {
		t.Fatal(err)
	}
	for kind, id := range map[commerce.Kind]value.ID{commerce.KindCustomer: p.id, commerce.KindOrder: p.order} {
		if err := s.Table.ChangeShopObject(t.Context(), shop, kind, "1", func(o *source.Object) bool {
			o.Parts = []source.Part{{ID: id}}
			return true
		}); err != nil {
			t.Fatal(err)
		}
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
func (s state) erasure(t *testing.T, customer value.ID) *ops.Erasure {
	t.Helper()
	return &ops.Erasure{
		Table: s.Table, Lists: s.lists(), Compactor: s.compactor(), Client: s.Queues().Client, Queues: s.status(t, false),
		Organization: s.Org, Customer: customer, Clock: s.Time,
		Pause: func(context.Context, time.Duration) error {
			s.TakeMessages(t)
			return nil
		},
	}
}

// erases erases everything, and returns how many messages and items.
func (s state) erases(t *testing.T, customer value.ID) (messages, items int) {
	t.Helper()
	erased, err := s.erasure(t, customer).Erase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range erased.Items {
		items += n
	}
	for _, n := range erased.Messages {
		messages += n
	}
	if len(erased.Left) > 0 {
		t.Errorf("left: %q", erased.Left)
	}
	return messages, items
}

// told returns the texts of the table's items but those of tails, which expire.
func (s state) told(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, it := range s.items(t) {
		if sk := text(it["SK"]); strings.HasPrefix(text(it["PK"]), "IDX#") && sk != "CHUNK" && !strings.HasPrefix(sk, "MANIFEST") {
			continue
		}
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

// A message that waits may carry the payload of an event: the erasure says so while
// one does.
func TestEraseTellsOfMessagesThatWait(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	gone := newPerson("quenby")
	s.stores(t, gone)
	e, pauses := s.erasure(t, gone.id), 0
	e.Pause = func(context.Context, time.Duration) error { pauses++; return nil }
	for run := range 2 { // the second finds nothing else
		erased, err := e.Erase(t.Context())
		if err != nil || pauses < 100*(run+1) || !slices.ContainsFunc(erased.Left, func(line string) bool { return strings.Contains(line, "run the command again") }) {
			t.Errorf("left %q, %v, after %d pauses; want the messages that wait", erased.Left, err, pauses)
		}
	}
	// Messages that are received and wait for a retry carry nothing.
	s.Queues().Await(t, servicetest.MainQueue)
	for len(s.Queues().Receive(t, servicetest.MainQueue)) > 0 {
	}
	if erased, err := e.Erase(t.Context()); err != nil || slices.ContainsFunc(erased.Left, func(line string) bool { return strings.Contains(line, "run the command again") }) {
		t.Errorf("left %q, %v; want no message", erased.Left, err)
	}
}

// A worker that has read the payload before it was erased stores the delivery after it.
func TestEraseWaitsForWorkersThatHaveReadAPayload(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	s.handle(t, s.apply(t, `"kind":"customer","op":"put","record":{"id":%q,"firstName":"Quenby"}`, value.NewID()))
	read := s.Queues().Await(t, servicetest.MainQueue)
	body, err := webhook.ParseDeliveryMessage(read[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	e, stored := s.erasure(t, value.ID{}), false
	e.Pause = func(ctx context.Context, _ time.Duration) error {
		in, err := s.Table.DeliveryInputs(ctx, []webhook.DeliveryRef{body.DeliveryRef})
		if err == nil && in[0].Payload == nil && !stored {
			stored = true
			_, err = s.Table.PutDelivery(ctx, body.Unstored(), body.Unstored().StoredAt(s.Now()))
		}
		return err
	}
	if erased, err := e.Erase(t.Context()); err != nil || !stored || len(erased.Left) > 0 {
		t.Errorf("%+v, %v; waited %t", erased, err, stored)
	}
	if all := s.AllDeliveries(t); len(all) > 0 {
		t.Errorf("%d deliveries are left", len(all))
	}
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
	for _, of := range []state{s, other} {
		grant, _ := account.NewFamily(account.Grant{OrganizationID: of.Org, ApplicationID: of.App, UserID: value.NewID()}, account.GrantLifetime, s.Now())
		if err := s.Table.CreateGrant(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
	}
	gone, stays := newPerson("quenby"), newPerson("tamsin")
	theirs := gone
	theirs.name, theirs.email = "ottoline", "ottoline@example.com"
	s.stores(t, gone)
	s.stores(t, stays)
	entry := account.NewAuditEntry("application.created", account.AuditActor{}, s.App, account.AuditObject{Kind: "application", ID: s.App}, s.Now())
	if err := s.Table.PutAuditEntry(t.Context(), s.Org, entry); err != nil {
		t.Fatal(err)
	}
	s.reindex(t)
	s.handle(t, s.apply(t, `"kind":"customer","op":"put","record":{"id":%q,"firstName":%q}`, gone.id, gone.name)) // in a tail
	other.stores(t, theirs)
	s.TakeMessages(t)
	for _, d := range s.AllDeliveries(t) {
		if d.ObjectID == gone.order {
			s.send(t, "DeliveriesDLQ", webhook.DeliveryMessage{DeliveryRef: d.Ref()}.Body())
		}
	}
	s.handle(t, s.apply(t, `"kind":"customer","op":"put","record":{"id":%q,"lastName":%q}`, gone.id, gone.name)) // whose delivery only a message has
	before, all := other.owned(t), s.owned(t)

	found, err := s.erasure(t, gone.id).Find(t.Context())
	if err != nil || found.Items["record"] != 3 || found.Items["receipt"] != 1 || found.Items["delivery"] < 5 || len(found.Messages) != 3 {
		t.Errorf("found %+v, %v", found, err)
	}
	if diff := cmp.Diff(all, s.owned(t)); diff != "" {
		t.Errorf("a dry run has changed items:\n%s", diff)
	}
	if messages, _ := s.erases(t, gone.id); messages != 3 {
		t.Errorf("erased %d messages, want 3", messages)
	}
	if _, items := s.erases(t, gone.id); items != 0 {
		t.Errorf("erased %d items again, want none", items)
	}
	s.forgot(t, gone)
	mine := fmt.Sprint(s.owned(t))
	for _, text := range []string{stays.name, stays.email, stays.id.String(), stays.order.String(), stays.deleted.String()} {
		if !strings.Contains(mine, text) {
			t.Errorf("%s is gone", text)
		}
	}
	if lines := s.differs(t); len(lines) > 0 {
		t.Errorf("the lists differ: %q", lines)
	}

	if found, err := s.erasure(t, value.ID{}).Find(t.Context()); err != nil || found.Items["audit entry"] != 1 {
		t.Errorf("of the organization: found %+v, %v", found, err)
	}
	if messages, _ := s.erases(t, value.ID{}); messages != 2 {
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

// forgot fails unless tombstones are all that is left of the person.
func (s state) forgot(t *testing.T, p person) {
	t.Helper()
	if told := s.told(t); strings.Contains(told, p.name) || strings.Contains(told, p.email) {
		t.Errorf("the table has the name or the address of %s", p.name)
	}
	for kind, id := range map[commerce.Kind]value.ID{"customer": p.id, "order": p.order, "invoice": p.invoice} {
		stored, err := s.Table.Records(t.Context(), s.Org, kind, []value.ID{id})
		if err != nil || stored[id] == nil || !stored[id].Deleted || stored[id].Doc != nil {
			t.Errorf("%s %s: %+v, %v; want a tombstone", kind, id, stored[id], err)
		}
	}
}

func TestAnErasureThatIsKilledIsRepeated(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	gone := newPerson("quenby")
	s.stores(t, gone)
	s.reindex(t)
	chunks := strings.Count(s.told(t), "CHUNK")
	killed := 0
	for requests := int64(10); ; requests += 10 {
		left := &atomic.Int64{}
		left.Store(requests)
		client := dynamodb.New(s.Client().Options(), func(o *dynamodb.Options) {
			o.HTTPClient, o.RetryMaxAttempts = dying{o.HTTPClient, left}, 1
		})
		e := s.erasure(t, gone.id)
		e.Table = dynamo.New(client, s.Table.Name(), s.Time)
		if _, err := e.Erase(t.Context()); err == nil {
			break
		}
		killed++
	}
	if found, err := s.erasure(t, gone.id).Find(t.Context()); err != nil || killed < 3 || len(found.Items)+len(found.Messages) > 0 {
		t.Errorf("killed %d times, and then found %+v, %v", killed, found, err)
	}
	s.forgot(t, gone)
	if after := strings.Count(s.told(t), "CHUNK"); after > chunks {
		t.Errorf("%d chunks before and %d after, want no more", chunks, after)
	}
	if lines := s.differs(t); len(lines) > 0 {
		t.Errorf("the lists differ: %q", lines)
	}
}

// A rebuild that was under way may have read what is erased.
func TestAnErasureBuildsListsAfterARebuildThatWasUnderWay(t *testing.T) {
	t.Parallel()
	s := newState(t)
	gone := newPerson("quenby")
	s.stores(t, gone)
	key := index.Key{Org: s.Org, List: s.lists().All()[0]}
	if err := s.compactor().RequestRebuild(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Table.Manifest(t.Context(), s.Org, key.List.Name, key.Layout().Rebuild())
	if err != nil {
		t.Fatal(err)
	}
	begun, err := key.DecodeRebuild(stored)
	if err != nil {
		t.Fatal(err)
	}
	s.erases(t, gone.id)
	live, _, err := index.Index{Key: key, Reader: s.Table}.Load(t.Context())
	if err != nil || live.RebuildID == begun.RebuildID {
		t.Errorf("the list is of the rebuild %s, which began before the erasure; %v", live.RebuildID, err)
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
	erased, err := s.erasure(t, customer).Erase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"order " + guest.String() + " names the customer, but not as its customerId",
		"messages in RecordsDLQ with records of others too, which have to be redriven first: 1",
	}
	if erased.Messages[recordsDLQ] != 1 || !slices.Equal(erased.Left, want) {
		t.Errorf("erased %v, left %q; want one message and %q", erased.Messages, erased.Left, want)
	}
	if n := len(s.take(t, recordsDLQ)); n != 3 {
		t.Errorf("%d messages stay, want 3", n)
	}
}
