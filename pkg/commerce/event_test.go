package commerce

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func eventTypes(t testing.TB, old, next *Stored) []string {
	t.Helper()
	events, err := Events(old, next)
	if err != nil {
		t.Fatal(err)
	}
	types := make([]string, len(events))
	for i, e := range events {
		types[i] = e.Type
	}
	return types
}

func TestATransitionIsItsEvents(t *testing.T) {
	const nothing = "-"
	order := func(fields string) string {
		return `{"id":"` + testID.String() + `","orderNumber":"1","currency":"EUR"` + fields + `}`
	}
	status := func(s string) string { return order(`,"status":"` + s + `"`) }
	payment := func(s string) string { return order(`,"paymentStatus":"` + s + `"`) }
	goods := func(s string) string { return order(`,"fulfillmentStatus":"` + s + `"`) }
	refunded := func(s, amount string) string { return order(`,"paymentStatus":"` + s + `","refundedTotal":` + amount) }
	invoice := func(s string) string {
		return `{"id":"` + testID.String() + `","currency":"EUR","invoiceNumber":"1","status":"` + s + `"}`
	}
	for _, tt := range []struct {
		kind     Kind
		from, to string
		want     string // beside created or updated
	}{
		{KindOrder, nothing, status("DRAFT"), ""},
		{KindOrder, nothing, status("PENDING"), ""},
		{KindOrder, nothing, status("CONFIRMED"), "order.confirmed"},
		{KindOrder, nothing, status("PROCESSING"), "order.confirmed"},
		{KindOrder, nothing, status("COMPLETED"), "order.confirmed order.completed"},
		{KindOrder, nothing, status("CANCELLED"), "order.cancelled"},
		{KindOrder, status("DRAFT"), status("PENDING"), ""},
		{KindOrder, status("DRAFT"), status("CONFIRMED"), "order.confirmed"},
		{KindOrder, status("DRAFT"), status("PROCESSING"), "order.confirmed"},
		{KindOrder, status("PENDING"), status("PROCESSING"), "order.confirmed"},
		{KindOrder, status("PENDING"), status("COMPLETED"), "order.confirmed order.completed"},
		{KindOrder, status("CONFIRMED"), status("PROCESSING"), ""},
		{KindOrder, status("CONFIRMED"), status("COMPLETED"), "order.completed"},
		{KindOrder, status("PROCESSING"), status("CONFIRMED"), "order.confirmed"},
		{KindOrder, status("CANCELLED"), status("COMPLETED"), "order.completed"},
		{KindOrder, status("CANCELLED"), status("PROCESSING"), ""},
		{KindOrder, status("COMPLETED"), status("CANCELLED"), "order.cancelled"},

		{KindOrder, nothing, goods("PARTIALLY_FULFILLED"), ""},
		{KindOrder, nothing, goods("FULFILLED"), "order.fulfilled"},
		{KindOrder, nothing, goods("DELIVERED"), "order.fulfilled order.shipped"},
		{KindOrder, goods("UNFULFILLED"), goods("SHIPPED"), "order.fulfilled order.shipped"},
		{KindOrder, goods("FULFILLED"), goods("SHIPPED"), "order.shipped"},
		{KindOrder, goods("SHIPPED"), goods("DELIVERED"), ""},
		{KindOrder, goods("DELIVERED"), goods("FULFILLED"), ""},
		{KindOrder, goods("DELIVERED"), goods("RETURNED"), ""},
		{KindOrder, goods("RETURNED"), goods("SHIPPED"), "order.fulfilled order.shipped"},

		{KindOrder, nothing, payment("PAID"), "order.paid payment.completed"},
		{KindOrder, nothing, payment("AUTHORIZED"), "payment.authorized"},
		{KindOrder, nothing, payment("FAILED"), "payment.failed"},
		{KindOrder, nothing, payment("REFUNDED"), "order.refunded payment.refunded"},
		{KindOrder, payment("UNPAID"), payment("PENDING"), ""},
		{KindOrder, payment("UNPAID"), payment("PARTIALLY_PAID"), ""},
		{KindOrder, payment("AUTHORIZED"), payment("PAID"), "order.paid payment.completed"},
		{KindOrder, payment("FAILED"), payment("AUTHORIZED"), "payment.authorized"},
		{KindOrder, payment("AUTHORIZED"), payment("VOIDED"), ""},
		{KindOrder, payment("PARTIALLY_REFUNDED"), payment("PAID"), ""},
		{KindOrder, payment("REFUNDED"), payment("PAID"), ""},
		{KindOrder, payment("PAID"), payment("PARTIALLY_REFUNDED"), "order.refunded payment.refunded"},
		{KindOrder, payment("PARTIALLY_REFUNDED"), payment("REFUNDED"), ""},
		{KindOrder, refunded("PAID", "0"), refunded("PAID", "0.0001"), "order.refunded payment.refunded"},
		{KindOrder, refunded("PARTIALLY_REFUNDED", "1"), refunded("REFUNDED", "2"), "order.refunded payment.refunded"},
		{KindOrder, refunded("PARTIALLY_REFUNDED", "2"), refunded("PARTIALLY_REFUNDED", "1"), ""},
		{KindOrder, refunded("PAID", "0"), refunded("REFUNDED", "9"), "order.refunded payment.refunded"},
		{KindOrder, nothing, refunded("PAID", "1"), "order.paid payment.completed order.refunded payment.refunded"},
		{
			KindOrder, order(`,"status":"PENDING","paymentStatus":"UNPAID","fulfillmentStatus":"UNFULFILLED"`),
			order(`,"status":"COMPLETED","paymentStatus":"PAID","fulfillmentStatus":"DELIVERED"`),
			"order.confirmed order.completed order.fulfilled order.shipped order.paid payment.completed",
		},

		{KindInvoice, nothing, invoice("DRAFT"), ""},
		{KindInvoice, nothing, invoice("ISSUED"), "invoice.issued"},
		{KindInvoice, nothing, invoice("PAID"), "invoice.issued invoice.paid"},
		{KindInvoice, nothing, invoice("VOID"), "invoice.voided"},
		{KindInvoice, nothing, invoice("UNCOLLECTIBLE"), ""},
		{KindInvoice, invoice("DRAFT"), invoice("ISSUED"), "invoice.issued"},
		{KindInvoice, invoice("DRAFT"), invoice("PARTIALLY_PAID"), "invoice.issued"},
		{KindInvoice, invoice("DRAFT"), invoice("PAID"), "invoice.issued invoice.paid"},
		{KindInvoice, invoice("DRAFT"), invoice("VOID"), "invoice.voided"},
		{KindInvoice, invoice("ISSUED"), invoice("PARTIALLY_PAID"), ""},
		{KindInvoice, invoice("ISSUED"), invoice("PAID"), "invoice.paid"},
		{KindInvoice, invoice("PAID"), invoice("REFUNDED"), ""},
		{KindInvoice, invoice("REFUNDED"), invoice("PAID"), "invoice.paid"},
		{KindInvoice, invoice("PAID"), invoice("VOID"), "invoice.voided"},
		{KindInvoice, invoice("VOID"), invoice("ISSUED"), ""},
	} {
		t.Run(fmt.Sprintf("%v_%v_%v", tt.kind, tt.from, tt.to), func(t *testing.T) {
			var old *Stored
			want := string(tt.kind) + ".created " + tt.want
			if tt.from != nothing {
				old = store(t, nil, put(tt.kind, tt.from), testNow)
				want = string(tt.kind) + ".updated " + tt.want
			}
			got := strings.Join(eventTypes(t, old, store(t, old, put(tt.kind, tt.to), testNow)), " ")
			if got != strings.TrimSpace(want) {
				t.Errorf("%s\n  to %s\n got %s\nwant %s", tt.from, tt.to, got, want)
			}
			if old == nil { // creating again after a delete is creating
				tombstone := &Stored{Kind: tt.kind, ID: testID, OrganizationID: testOrg, Deleted: true, Revision: testNow - 1}
				if got := strings.Join(eventTypes(t, tombstone, store(t, tombstone, put(tt.kind, tt.to), testNow)), " "); got != strings.TrimSpace(want) {
					t.Errorf("after a delete %s: got %s, want %s", tt.to, got, want)
				}
			}
		})
	}
}

func TestEveryKindIsCreatedUpdatedAndDeleted(t *testing.T) {
	for _, kind := range Kinds() {
		record := exampleRecords[kind]
		old := store(t, nil, put(kind, record), testNow)
		next := store(t, old, put(kind, string(overlay(jsontext.Value(record), `{"createdAt":"2020-01-01"}`))), testNow)
		gone := put(kind, record)
		gone.Op = OpDelete
		tombstone := store(t, next, gone, testNow+5)
		for _, tt := range []struct {
			name      string
			old, next *Stored
			want      string
			previous  string
		}{
			{"created", nil, old, ".created", "null"},
			{"updated", old, next, ".updated", `{"createdAt":"2026-11-21T06:35:41.242Z"}`},
			{"deleted", next, tombstone, ".deleted", "null"},
		} {
			events, err := Events(tt.old, tt.next)
			if err != nil || len(events) != 1 {
				t.Errorf("%s %s: %v, %v", kind, tt.name, events, err)
				continue
			}
			e := events[0]
			if e.Type != string(kind)+tt.want || string(e.Data.PreviousAttributes) != tt.previous {
				t.Errorf("%s %s: %s with previous %s, want %s", kind, tt.name, e.Type, e.Data.PreviousAttributes, tt.previous)
			}
			shown := tt.next
			if shown.Deleted {
				shown = tt.old
			}
			if !bytes.Equal(e.Data.Object, shown.Doc) {
				t.Errorf("%s %s: object %s, want %s", kind, tt.name, e.Data.Object, shown.Doc)
			}
			if e.Timestamp != tt.next.Revision || e.OrganizationID != testOrg ||
				e.ID != EventID(kind, testOrg, tt.next.ID, tt.next.Revision, e.Type) {
				t.Errorf("%s %s: %+v", kind, tt.name, e)
			}
			if site := headOf(mustRecord(t, shown)).SiteID; (site == nil) != (e.SiteID == nil) || site != nil && *site != *e.SiteID {
				t.Errorf("%s %s: siteId %v, want %v", kind, tt.name, e.SiteID, site)
			}
		}
	}
}

func TestWhatChangesNothingShownEmitsNothing(t *testing.T) {
	record := `{"id":"` + testID.String() + `","name":"a"}`
	live := store(t, nil, put(KindProduct, record), testNow)
	version := int64(7)
	raised := put(KindProduct, record)
	raised.Version = &version
	silent := put(KindProduct, `{"id":"`+testID.String()+`","name":"b"}`)
	silent.Silent = true
	gone := put(KindProduct, record)
	gone.Op = OpDelete
	tombstone := store(t, nil, gone, testNow)
	touched := *live
	touched.Revision++
	touched.Doc = bytes.Replace(live.Doc, []byte(`"updatedAt":"2026-11-21T06:35:41.242Z"`), []byte(`"updatedAt":"2026-11-21T06:35:41.243Z"`), 1)
	for name, pair := range map[string][2]*Stored{
		"a higher version":        {live, store(t, live, raised, testNow)},
		"a silent put":            {live, store(t, live, silent, testNow)},
		"a silent first put":      {nil, store(t, nil, silent, testNow)},
		"a delete of nothing":     {nil, tombstone},
		"a delete of a tombstone": {tombstone, &Stored{Kind: KindProduct, ID: testID, Deleted: true, Revision: testNow + 9}},
		"updatedAt alone":         {live, &touched},
		"the same image":          {live, live},
		"an expired tombstone":    {tombstone, nil},
	} {
		if got := eventTypes(t, pair[0], pair[1]); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAChangeOfSitesAloneHasNoPreviousAttributes(t *testing.T) {
	c := put(KindProduct, `{"id":"`+testID.String()+`","name":"a"}`)
	old := store(t, nil, c, testNow)
	c.Sites = Sites{Given: true, Value: []value.ID{testSite}}
	events, err := Events(old, store(t, old, c, testNow))
	if err != nil || len(events) != 1 || events[0].Type != "product.updated" || string(events[0].Data.PreviousAttributes) != "{}" {
		t.Errorf("got %+v, %v; want product.updated with {}", events, err)
	}
}

func TestAnInvoiceInAnEventIsAsOfTheEvent(t *testing.T) {
	const head = `{"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","currency":"EUR","invoiceNumber":"1","total":5,"dueAt":"2026-11-21T06:35:41.300Z"`
	issued := store(t, nil, put(KindInvoice, head+`,"status":"ISSUED"}`), testNow)
	flag := func(s string) bool { return strings.Contains(s, `"isOverdue":true`) }
	first, err := Events(nil, issued)
	if err != nil || flag(string(first[0].Data.Object)) {
		t.Fatalf("before it is due: %s, %v", first[0].Data.Object, err)
	}
	noted := store(t, issued, put(KindInvoice, head+`,"status":"ISSUED","notes":"n"}`), testNow+100)
	second, err := Events(issued, noted)
	if err != nil || !flag(string(second[0].Data.Object)) || string(second[0].Data.PreviousAttributes) != `{"notes":null}` {
		t.Fatalf("after: %s, %v", second[0].Data, err)
	}
	settled := store(t, noted, put(KindInvoice, head+`,"status":"PAID","notes":"n"}`), testNow+200)
	third, err := Events(noted, settled)
	want := `{"status":"ISSUED","isOverdue":true}`
	if err != nil || flag(string(third[0].Data.Object)) || string(third[0].Data.PreviousAttributes) != want {
		t.Fatalf("paid: %s, %v; want previous %s", third[0].Data, err, want)
	}
}

func TestPreviousAttributesLeadBackToTheOldObject(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind Kind) {
		old, err := Apply(nil, put(kind, string(drawMessage(t, kind))), testNow)
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(old, put(kind, string(drawMessage(t, kind))), testNow+1)
		if err != nil {
			t.Fatal(err)
		}
		events, err := Events(old, next)
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return
		}
		var back, want map[string]jsontext.Value
		decode(t, events[0].Data.Object, &back)
		decode(t, events[0].Data.PreviousAttributes, &back)
		decode(t, old.shape(next.Revision), &want)
		delete(back, "updatedAt")
		delete(want, "updatedAt")
		if got, want := string(encode(t, back)), string(encode(t, want)); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		var previous, object map[string]jsontext.Value
		decode(t, events[0].Data.PreviousAttributes, &previous)
		decode(t, events[0].Data.Object, &object)
		for name, old := range previous {
			if bytes.Equal(old, object[name]) || name == "updatedAt" {
				t.Fatalf("%s is listed, unchanged: %s", name, old)
			}
		}
	})
}

func decode(t *rapid.T, v jsontext.Value, into *map[string]jsontext.Value) {
	if err := json.Unmarshal(v, into); err != nil {
		t.Fatal(err)
	}
}

func TestADocumentOfAnEarlierShapeComparesByName(t *testing.T) {
	old := &Stored{Kind: KindCategory, ID: testID, Revision: 1, Doc: jsontext.Value(
		`{"name":"a","image":"i","id":"x","updatedAt":"2026-11-21T06:35:41.242Z"}`)}
	next := &Stored{Kind: KindCategory, ID: testID, Revision: 2, Doc: jsontext.Value(
		`{"id":"x","name":"b","siteId":null,"order":0,"image":"i","updatedAt":"2026-11-21T06:35:41.243Z"}`)}
	events, err := Events(old, next)
	if want := `{"name":"a","order":null}`; err != nil || len(events) != 1 || string(events[0].Data.PreviousAttributes) != want {
		t.Errorf("got %+v, %v; want previous %s", events, err, want)
	}
}

func TestEventIdentifiersAreStable(t *testing.T) {
	id := EventID(KindOrder, testOrg, testID, testNow, "order.created")
	if want := "8ceb4307-d252-5224-8bef-4e8d42fd1a5c"; id.String() != want {
		t.Errorf("EventID = %s, want %s: replays of what is stored would be sent again", id, want)
	}
	seen := map[value.ID]string{}
	for i, other := range []value.ID{
		id,
		EventID(KindInvoice, testOrg, testID, testNow, "order.created"),
		EventID(KindOrder, testID, testID, testNow, "order.created"),
		EventID(KindOrder, testOrg, testOrg, testNow, "order.created"),
		EventID(KindOrder, testOrg, testID, testNow+1, "order.created"),
		EventID(KindOrder, testOrg, testID, testNow, "order.updated"),
	} {
		if was, twice := seen[other]; twice {
			t.Errorf("%d has the identifier of %s", i, was)
		}
		seen[other] = fmt.Sprint(i)
	}
}

func TestAPayloadIsTheSameEveryTime(t *testing.T) {
	s := store(t, nil, put(KindOrder, exampleRecords[KindOrder]), testNow)
	events, err := Events(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	body, err := events[0].Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"` + events[0].ID.String() + `","type":"order.created","apiVersion":"2026-11-01","timestamp":"2026-11-21T06:35:41.242Z",` +
		`"organizationId":"` + testOrg.String() + `","siteId":"` + testSite.String() + `","data":{"object":` +
		string(s.Doc) + `,"previousAttributes":null}}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestABrokenDocumentIsAnErrorOfEvents(t *testing.T) {
	good := store(t, nil, put(KindCategory, `{"id":"`+testID.String()+`","name":"a"}`), testNow)
	for _, doc := range []string{``, `{`, `[]`, `{"siteId":"x"}`, `{"id":1} ` + "x"} {
		t.Run(doc, func(t *testing.T) {
			bad := &Stored{Kind: KindCategory, ID: testID, Revision: testNow + 1, Doc: jsontext.Value(doc)}
			if events, err := Events(nil, bad); err == nil {
				t.Errorf("created %q: %v", doc, events)
			}
			if events, err := Events(good, bad); err == nil {
				t.Errorf("updated to %q: %v", doc, events)
			}
			gone := &Stored{Kind: KindCategory, ID: testID, Revision: testNow + 2, Deleted: true}
			if events, err := Events(bad, gone); err == nil {
				t.Errorf("deleted %q: %v", doc, events)
			}
		})
	}
}

func TestEveryTypeButTheTestIsOfAResourceAndAboutAKindOfObject(t *testing.T) {
	about := map[string]string{}
	for kind, types := range EventsByObject() {
		for _, name := range types {
			if other, twice := about[name]; twice {
				t.Errorf("%s is about a %s and a %s", name, kind, other)
			}
			about[name] = kind
		}
	}
	for _, name := range EventNames() {
		resource := resourceOf(name)
		want := map[string]string{"payment": "order", "webhook": ""}
		kind, other := want[resource]
		if !other {
			kind = resource
		}
		if about[name] != kind {
			t.Errorf("%s is about a %q, want %q", name, about[name], kind)
		}
		if !slices.Contains(EventSets()[resource+".*"], name) || !ValidSubscription(resource+".*") {
			t.Errorf("%s.* lacks %s", resource, name)
		}
	}
}
