package commerce

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAStoredDocumentReadsBackUnchanged(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind Kind) {
		next, err := Apply(nil, put(kind, string(drawMessage(t, kind))), testNow)
		if err != nil {
			t.Fatal(err)
		}
		r, err := next.Record()
		if err != nil {
			t.Fatal(err)
		}
		if h := headOf(r); reflect.TypeOf(r) != reflect.TypeOf(New(kind)) || h.ID != next.ID || kind != KindStock && h.ID != testID || h.OrganizationID != testOrg ||
			h.UpdatedAt != next.Revision {
			t.Fatalf("head %+v of %s", h, next.Doc)
		}
		doc, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(doc, next.Doc) {
			t.Fatalf("stored %s\nread   %s", next.Doc, doc)
		}
	})
}

func TestAGetShapeSentBackChangesNothing(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind Kind) {
		old, err := Apply(nil, put(kind, string(drawMessage(t, kind))), testNow)
		if err != nil {
			t.Fatal(err)
		}
		back := put(kind, string(AppendShape(nil, kind, old.Doc, testNow+1e12)))
		next, err := Apply(old, back, testNow+5)
		if next != nil || err != nil {
			t.Fatalf("sent back %s\nstores    %+v, %v", back.Record, next, err)
		}
	})
}

func TestAReplayedChangeWritesNothing(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind Kind) {
		c := put(kind, string(drawMessage(t, kind)))
		if rapid.Bool().Draw(t, "versioned") {
			version := rapid.Int64Range(0, 1<<62).Draw(t, "version")
			c.Version = &version
		}
		if kind == KindProduct && rapid.Bool().Draw(t, "sites") {
			c.Sites = Sites{Given: true, Value: []value.ID{testSite, testOrg, testSite}}
		}
		if rapid.Bool().Draw(t, "delete") {
			c.Op = OpDelete
		}
		old, err := Apply(nil, c, testNow)
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(old, c, testNow+1000)
		if next != nil || err != nil {
			t.Fatalf("again: %+v, %v", next, err)
		}
	})
}

// versioned is a sender's history: a function of the version alone.
func versioned(version int64, deletes bool) Change {
	c := put(KindCategory, `{"id":"`+testID.String()+`","name":"v`+strconv.FormatInt(version, 10)+`"}`)
	c.Version = &version
	if deletes {
		c.Op = OpDelete
	}
	return c
}

func TestTheHighestVersionWinsInAnyOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(t, "deletes")
		arrivals := rapid.SliceOfN(rapid.IntRange(0, len(history)-1), len(history), 30).Draw(t, "arrivals")
		var stored *Stored
		revision, highest := value.Time(0), int64(-1)
		for i, arrival := range arrivals {
			now := testNow + value.Time(rapid.Int64Range(-5, 5).Draw(t, "clock"))
			next, err := Apply(stored, versioned(int64(arrival), history[arrival]), now)
			if err != nil {
				t.Fatalf("arrival %d of version %d: %v", i, arrival, err)
			}
			if newer := int64(arrival) > highest; (next != nil) != newer {
				t.Fatalf("arrival %d of version %d over %d: stored %+v", i, arrival, highest, next)
			}
			if next == nil {
				continue
			}
			sameState := stored != nil && stored.Deleted && next.Deleted
			if rises := next.Revision > revision; rises == sameState {
				t.Fatalf("revision %d after %d, same state %v", next.Revision, revision, sameState)
			}
			stored, revision, highest = next, next.Revision, int64(arrival)
		}
		if *stored.Version != highest || stored.Deleted != history[highest] {
			t.Fatalf("stored version %d, deleted %v; want %d, %v", *stored.Version, stored.Deleted, highest, history[highest])
		}
	})
}

func TestVersionsDecideOneByOne(t *testing.T) {
	type step struct {
		op      Op
		name    string
		version int64 // -1: none
	}
	const none = -1
	for name, tt := range map[string]struct {
		steps   []step
		reason  string // of the last step
		writes  bool   // the last step is stored
		want    string // the name in force; "" when deleted
		version int64
		moves   bool // the last step made a new revision
	}{
		"lower is skipped":                     {[]step{{OpPut, "a", 5}, {OpPut, "b", 4}}, "", false, "a", 5, false},
		"equal with the same content":          {[]step{{OpPut, "a", 5}, {OpPut, "a", 5}}, "", false, "a", 5, false},
		"equal with other content":             {[]step{{OpPut, "a", 5}, {OpPut, "b", 5}}, "version_conflict", false, "a", 5, false},
		"higher with other content":            {[]step{{OpPut, "a", 5}, {OpPut, "b", 6}}, "", true, "b", 6, true},
		"higher with the same content":         {[]step{{OpPut, "a", 5}, {OpPut, "a", 6}}, "", true, "a", 6, false},
		"first version with the same content":  {[]step{{OpPut, "a", none}, {OpPut, "a", 0}}, "", true, "a", 0, false},
		"without one the last wins":            {[]step{{OpPut, "a", 5}, {OpPut, "b", none}}, "", true, "b", 5, true},
		"without one the version stays":        {[]step{{OpPut, "a", 5}, {OpPut, "b", none}, {OpPut, "c", 4}}, "", false, "b", 5, false},
		"delete of a lower version":            {[]step{{OpPut, "a", 5}, {OpDelete, "", 4}}, "", false, "a", 5, false},
		"delete of the same version":           {[]step{{OpPut, "a", 5}, {OpDelete, "", 5}}, "", true, "", 5, true},
		"delete without one":                   {[]step{{OpPut, "a", 5}, {OpDelete, "", none}}, "", true, "", 5, true},
		"tombstone blocks the same version":    {[]step{{OpDelete, "", 5}, {OpPut, "a", 5}}, "", false, "", 5, false},
		"tombstone blocks a lower version":     {[]step{{OpDelete, "", 5}, {OpPut, "a", 4}}, "", false, "", 5, false},
		"tombstone gives way to a newer put":   {[]step{{OpDelete, "", 5}, {OpPut, "a", 6}}, "", true, "a", 6, true},
		"tombstone gives way to a put without": {[]step{{OpDelete, "", 5}, {OpPut, "a", none}}, "", true, "a", 5, true},
		"tombstone without gives way":          {[]step{{OpDelete, "", none}, {OpPut, "a", 0}}, "", true, "a", 0, true},
		"deleting again":                       {[]step{{OpDelete, "", 5}, {OpDelete, "", none}}, "", false, "", 5, false},
		"deleting again with a higher version": {[]step{{OpDelete, "", 5}, {OpDelete, "", 7}}, "", true, "", 7, false},
		"creating again after a delete":        {[]step{{OpPut, "a", none}, {OpDelete, "", none}, {OpPut, "a", none}}, "", true, "a", none, true},
		"deleting what never was":              {[]step{{OpDelete, "", none}}, "", true, "", none, true},
		"version 0 is a version":               {[]step{{OpPut, "a", 0}, {OpPut, "b", 0}}, "version_conflict", false, "a", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var stored, next *Stored
			var err error
			var before value.Time
			for i, s := range tt.steps {
				c := put(KindCategory, `{"id":"`+testID.String()+`","name":"`+s.name+`"}`)
				c.Op = s.op
				if s.version != none {
					c.Version = &s.version
				}
				if stored != nil {
					before = stored.Revision
				}
				next, err = Apply(stored, c, testNow)
				if err == nil && next != nil {
					stored = next
				} else if i < len(tt.steps)-1 {
					t.Fatalf("step %d %+v: %+v, %v", i, s, next, err)
				}
			}
			reason := ""
			if f, ok := fault.As(err); ok {
				reason = f.Code
			}
			if reason != tt.reason {
				t.Errorf("refused as %q (%v), want %q", reason, err, tt.reason)
			}
			if (next != nil) != tt.writes {
				t.Errorf("stores %+v, want something: %v", next, tt.writes)
			}
			if got := stored.Revision > before; got != tt.moves {
				t.Errorf("revision %d after %d, want a new one: %v", stored.Revision, before, tt.moves)
			}
			if got := value.Or(stored.Version, none); got != tt.version {
				t.Errorf("version %d, want %d", got, tt.version)
			}
			if stored.Deleted {
				if tt.want != "" || stored.Doc != nil || stored.ID != testID || stored.OrganizationID != testOrg {
					t.Errorf("tombstone %+v, want name %q", stored, tt.want)
				}
				return
			}
			r, err := stored.Record()
			if err != nil {
				t.Fatal(err)
			}
			if got := r.(*Category).Name; got != tt.want {
				t.Errorf("name %q, want %q", got, tt.want)
			}
		})
	}
}

func TestATombstoneLastsNinetyDays(t *testing.T) {
	c := put(KindOrder, `{"id":"`+testID.String()+`"}`)
	c.Op = OpDelete
	at, ok := store(t, nil, c, testNow).ExpiresAt()
	if want := testNow + 90*24*3600*1000; !ok || at != want {
		t.Errorf("ExpiresAt = %v, %v; want %v", at, ok, want)
	}
	if _, ok := store(t, nil, put(KindCategory, `{"id":"`+testID.String()+`","name":"a"}`), testNow).ExpiresAt(); ok {
		t.Error("a live record expires")
	}
}

func TestAbsentFieldsTakeTheirDefaults(t *testing.T) {
	const head = `"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5"`
	const org = `"organizationId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"`
	const times = `"createdAt":"2026-11-21T06:35:41.242Z","updatedAt":"2026-11-21T06:35:41.242Z"}`
	for _, tt := range []struct {
		kind         Kind
		record, want string
	}{
		{
			KindProduct,
			`{` + head + `,"name":"  Cup "}`,
			`{` + head + `,` + org + `,"name":"Cup","description":null,"type":"PHYSICAL","sku":null,"barcode":null,` +
				`"categoryId":null,"brandId":null,"unit":"PIECE","images":[],"purchasePrice":null,"sellingPrice":null,` +
				`"taxRate":null,"isActive":true,"trackInventory":false,"minStockLevel":null,"maxStockLevel":null,` +
				`"reorderPoint":null,"isPerishable":false,"shelfLifeDays":null,"attributes":{},"tags":[],` + times,
		},
		{
			KindCategory,
			`{` + head + `,"name":"Crème & Brûlée"}`,
			`{` + head + `,` + org + `,"siteId":null,"name":"Crème & Brûlée","description":null,"slug":"creme-brulee",` +
				`"parentId":null,"isActive":true,"image":null,"order":0,` + times,
		},
		{
			KindCustomer,
			`{` + head + `}`,
			`{` + head + `,` + org + `,"siteId":null,"customerNumber":null,"externalRef":null,"type":"INDIVIDUAL",` +
				`"firstName":null,"lastName":null,"companyName":null,"email":null,"phone":null,"taxNumber":null,` +
				`"isActive":true,"acceptsMarketing":false,"locale":null,"currency":null,"addresses":[],` +
				`"defaultBillingAddressId":null,"defaultShippingAddressId":null,"ordersCount":0,"totalSpent":0,` +
				`"lastOrderAt":null,"tags":[],"notes":null,"metadata":{},` + times,
		},
		{
			KindOrder,
			`{` + head + `,"orderNumber":"1","currency":"EUR"}`,
			`{` + head + `,` + org + `,"siteId":null,"orderNumber":"1","externalRef":null,"source":"API","status":"PENDING",` +
				`"paymentStatus":"UNPAID","fulfillmentStatus":"UNFULFILLED","currency":"EUR","customerId":null,` +
				`"customerName":null,"customerEmail":null,"billingAddress":null,"shippingAddress":null,"items":[],` +
				`"taxLines":[],"payments":[],"shipments":[],"refunds":[],"couponCodes":[],"pricesIncludeTax":false,` +
				`"subtotal":0,"discountTotal":0,"shippingTotal":0,"taxTotal":0,"total":0,"paidTotal":0,` +
				`"refundedTotal":0,"balanceDue":0,"notes":null,"cancelReason":null,"tags":[],"metadata":{},` +
				`"placedAt":"2026-11-21T06:35:41.242Z","paidAt":null,"fulfilledAt":null,"completedAt":null,"cancelledAt":null,` + times,
		},
		{
			KindInvoice,
			`{` + head + `,"currency":"EUR","invoiceNumber":"dropped of a draft","isOverdue":"ignored"}`,
			`{` + head + `,` + org + `,"siteId":null,"invoiceNumber":null,"externalRef":null,"type":"INVOICE",` +
				`"relatedInvoiceId":null,"status":"DRAFT","isOverdue":false,"orderId":null,"customerId":null,` +
				`"customerName":null,"customerEmail":null,"customerTaxNumber":null,"billingAddress":null,"currency":"EUR",` +
				`"lines":[],"taxLines":[],"subtotal":0,"discountTotal":0,"taxTotal":0,"total":0,"amountPaid":0,` +
				`"amountDue":0,"issuedAt":null,"sentAt":null,"dueAt":null,"paidAt":null,"voidedAt":null,"pdfUrl":null,` +
				`"notes":null,"metadata":{},` + times,
		},
		{
			KindStock,
			`{"productId":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","locationRef":" ","onHand":-1.5,"available":"ignored"}`,
			`{"id":"` + StockID(testOrg, testID, nil, nil).String() + `",` + org + `,"productId":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5",` +
				`"siteId":null,"locationRef":null,"onHand":-1.5,"reserved":0,"available":-1.5,` + times,
		},
	} {
		t.Run(fmt.Sprint(tt.kind), func(t *testing.T) {
			got := store(t, nil, put(tt.kind, tt.record), testNow)
			if diff := cmp.Diff(tt.want, string(got.Doc)); diff != "" {
				t.Errorf("%s %s:\n%s", tt.kind, tt.record, diff)
			}
			nulled := nullAll(t, tt.kind, tt.record)
			if got := store(t, nil, put(tt.kind, nulled), testNow); string(got.Doc) != tt.want {
				t.Errorf("%s with null for what is absent:\n%s", tt.kind, cmp.Diff(tt.want, string(got.Doc)))
			}
		})
	}
}

// nullAll adds every other field of the kind as null: null is absent.
func nullAll(t *testing.T, kind Kind, record string) string {
	t.Helper()
	var b strings.Builder
	typ := reflect.TypeOf(New(kind)).Elem()
	for i := range typ.NumField() {
		name := typ.Field(i).Tag.Get("json")
		if !strings.Contains(record, `"`+name+`"`) {
			b.WriteString(`,"` + name + `":null`)
		}
	}
	return strings.TrimSuffix(record, "}") + b.String() + "}"
}

func TestTimesFollowTheirRules(t *testing.T) {
	const head = `{"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","orderNumber":"1","currency":"EUR"`
	old := store(t, nil, put(KindOrder, head+`,"createdAt":"2020-01-02","updatedAt":"1999-01-01"}`), testNow)
	r := mustRecord(t, old).(*Order)
	if r.CreatedAt.String() != "2020-01-02T00:00:00.000Z" || r.PlacedAt != r.CreatedAt || r.UpdatedAt != testNow {
		t.Errorf("created %v, placed %v, updated %v", r.CreatedAt, r.PlacedAt, r.UpdatedAt)
	}
	next := store(t, old, put(KindOrder, head+`,"notes":"n"}`), testNow-7)
	r = mustRecord(t, next).(*Order)
	if r.CreatedAt.String() != "2020-01-02T00:00:00.000Z" || r.PlacedAt != r.CreatedAt || r.UpdatedAt != testNow+1 {
		t.Errorf("later put: created %v, placed %v, updated %v", r.CreatedAt, r.PlacedAt, r.UpdatedAt)
	}
	moved := store(t, next, put(KindOrder, head+`,"createdAt":"2021-01-02"}`), testNow+9)
	if r = mustRecord(t, moved).(*Order); r.CreatedAt.String() != "2021-01-02T00:00:00.000Z" {
		t.Errorf("given again: created %v", r.CreatedAt)
	}
	gone := put(KindOrder, head+`}`)
	gone.Op = OpDelete
	tombstone := store(t, moved, gone, testNow+20)
	again := store(t, tombstone, put(KindOrder, head+`}`), testNow+30)
	if r = mustRecord(t, again).(*Order); r.CreatedAt != testNow+30 {
		t.Errorf("created again: created %v, want its arrival %v", r.CreatedAt, testNow+30)
	}
}

func mustRecord(t *testing.T, s *Stored) any {
	t.Helper()
	r, err := s.Record()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheReferenceOfAProductStaysUnlessGiven(t *testing.T) {
	c := put(KindProduct, `{"id":"`+testID.String()+`","name":"a"}`)
	with := func(text string) Change {
		given := c
		given.ExternalRef = Reference{Given: true, Value: text}
		return given
	}
	old := store(t, nil, with("ERP 7"), testNow)
	for _, same := range []Change{c, with("ERP 7")} {
		if next, err := Apply(old, same, testNow); next != nil || err != nil {
			t.Errorf("the same content again: %+v, %v", next, err)
		}
	}
	for _, text := range []string{"erp 7", ""} {
		next := store(t, old, with(text), testNow)
		events, err := Events(old, next)
		if next.ExternalRef != text || next.Revision <= old.Revision || err != nil || len(events) != 1 {
			t.Errorf("%q: stored %+v with %d events, %v", text, next, len(events), err)
		}
	}
	c.Op = OpDelete
	if s := store(t, old, c, testNow); s.ExternalRef != "" {
		t.Errorf("tombstone with %q", s.ExternalRef)
	}
}

func TestSitesOfAProductStayUnlessGiven(t *testing.T) {
	record := `{"id":"` + testID.String() + `","name":"a"}`
	with := func(sites Sites) Change {
		c := put(KindProduct, record)
		c.Sites = sites
		return c
	}
	old := store(t, nil, with(Sites{Given: true, Value: []value.ID{testSite, testOrg, testSite}}), testNow)
	if want := []value.ID{testOrg, testSite}; !cmp.Equal(old.SiteIDs, want) {
		t.Fatalf("sites %v, want the sorted set %v", old.SiteIDs, want)
	}
	renamed := store(t, old, put(KindProduct, strings.Replace(record, `"a"`, `"b"`, 1)), testNow)
	if !cmp.Equal(renamed.SiteIDs, old.SiteIDs) {
		t.Errorf("sites %v after a put without, want %v", renamed.SiteIDs, old.SiteIDs)
	}
	if next, err := Apply(old, with(Sites{Given: true, Value: []value.ID{testOrg, testSite}}), testNow); next != nil || err != nil {
		t.Errorf("the same set again: %+v, %v", next, err)
	}
	every := store(t, old, with(Sites{Given: true}), testNow)
	if every.SiteIDs != nil {
		t.Errorf("sites %v after [], want none", every.SiteIDs)
	}
	gone := put(KindProduct, record)
	gone.Op = OpDelete
	if s := store(t, old, gone, testNow); s.SiteIDs != nil {
		t.Errorf("tombstone with sites %v", s.SiteIDs)
	}
}

func TestAbsentNestedIdentifiersAreDerived(t *testing.T) {
	record := `{"id":"` + testID.String() + `","orderNumber":"1","currency":"EUR","billingAddress":{},"shippingAddress":{},` +
		`"items":[{"name":"a","quantity":1,"unitPrice":1},{"name":"b","quantity":1,"unitPrice":1,"id":"` + testSite.String() + `"}],` +
		`"payments":[{},{}],"shipments":[{}],"refunds":[{}]}`
	o := mustRecord(t, store(t, nil, put(KindOrder, record), testNow)).(*Order)
	if o.Items[1].ID != testSite {
		t.Errorf("given id became %v", o.Items[1].ID)
	}
	if want := value.DeriveID(testID, "items/0"); o.Items[0].ID != want {
		t.Errorf("items[0].id = %v, want %v", o.Items[0].ID, want)
	}
	seen := map[value.ID]bool{}
	for _, id := range []value.ID{
		o.Items[0].ID, o.Payments[0].ID, o.Payments[1].ID, o.Shipments[0].ID, o.Refunds[0].ID,
		o.BillingAddress.ID, o.ShippingAddress.ID,
	} {
		if seen[id] || id.IsZero() || id[6]>>4 != 5 {
			t.Errorf("identifier %v is not a version 5 of its own", id)
		}
		seen[id] = true
	}
}

func TestFreeFormObjectsAreKeptButForTheirForm(t *testing.T) {
	head := `{"id":"` + testID.String() + `","name":"a","attributes":`
	old := store(t, nil, put(KindProduct, head+`{ "b": 1.0, "a": {"z":-1.7976931348623157e308, "\u0079": 12345678901234567890.12} }}`), testNow)
	got := mustRecord(t, old).(*Product).Attributes
	if want := `{"a":{"y":12345678901234567890.12,"z":-1.7976931348623157e308},"b":1.0}`; string(got) != want {
		t.Errorf("attributes %s, want %s", got, want)
	}
	same := put(KindProduct, head+`{"a":{"y":12345678901234567890.12,"z":-1.7976931348623157e308},"b":1.0}}`)
	if next, err := Apply(old, same, testNow); next != nil || err != nil {
		t.Errorf("another order of names: %+v, %v", next, err)
	}
}

func TestABadRecordIsRefusedByField(t *testing.T) {
	const id = `"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5"`
	stock := func(fields string) string {
		return `{"productId":"` + testID.String() + `","onHand":-1` + fields + `}`
	}
	order := func(more string) string { return `{` + id + `,"orderNumber":"1","currency":"EUR"` + more + `}` }
	item := func(more string) string {
		return order(`,"items":[{"name":"a","quantity":1,"unitPrice":1` + more + `}]`)
	}
	list := func(n int, entry string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
	}
	product := func(more string) string { return `{` + id + `,"name":"a"` + more + `}` }
	nest := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, tt := range []struct {
		kind                    Kind
		record, field, contains string
	}{
		{KindProduct, `{"name":"a"}`, "record.id", "is required"},
		{KindProduct, `{"id":null,"name":"a"}`, "record.id", "is required"},
		{KindProduct, `{"id":"x","name":"a"}`, "record.id", "must be a UUID"},
		{KindProduct, `{` + id + `}`, "record.name", "is required"},
		{KindProduct, `{` + id + `,"name":"  "}`, "record.name", "is required"},
		{KindProduct, product(`,"siteId":null`), "record.siteId", "is not a field"},
		{KindProduct, product(`,"name":"b"`), "record.name", "once"},
		{KindProduct, product(`,"sku":5`), "record.sku", "must be a string"},
		{KindProduct, product(`,"sku":"a\u0085"`), "record.sku", "control characters: character 2 is U+0085"},
		{KindProduct, product(`,"type":"physical"`), "record.type", "must be one of PHYSICAL, DIGITAL"},
		{KindProduct, product(`,"type":5`), "record.type", "must be a string"},
		{KindProduct, product(`,"unit":"MILE"`), "record.unit", "must be one of PIECE"},
		{KindProduct, product(`,"sellingPrice":1.00001`), "record.sellingPrice", "at most 4 decimals"},
		{KindProduct, product(`,"sellingPrice":"1"`), "record.sellingPrice", "must be a number"},
		{KindProduct, product(`,"sellingPrice":100000000000`), "record.sellingPrice", "must lie between"},
		{KindProduct, product(`,"sellingPrice":-0.0001`), "record.sellingPrice", "must be 0 or more"},
		{KindProduct, product(`,"purchasePrice":-1`), "record.purchasePrice", "must be 0 or more"},
		{KindProduct, product(`,"minStockLevel":-1`), "record.minStockLevel", "must be 0 or more"},
		{KindProduct, product(`,"maxStockLevel":-1`), "record.maxStockLevel", "must be 0 or more"},
		{KindProduct, product(`,"reorderPoint":-1`), "record.reorderPoint", "must be 0 or more"},
		{KindProduct, product(`,"taxRate":1000.0001`), "record.taxRate", "between 0 and 1000"},
		{KindProduct, product(`,"taxRate":-1`), "record.taxRate", "between 0 and 1000"},
		{KindProduct, product(`,"shelfLifeDays":1.00001`), "record.shelfLifeDays", "at most 4 decimals"},
		{KindProduct, product(`,"createdAt":"yesterday"`), "record.createdAt", "RFC 3339"},
		{KindProduct, product(`,"isActive":"true"`), "record.isActive", "true or false"},
		{KindProduct, product(`,"organizationId":"` + testSite.String() + `"`), "record.organizationId", "organization of the message"},
		{KindProduct, product(`,"images":` + list(101, `"a"`)), "record.images", "at most 100"},
		{KindProduct, product(`,"tags":` + list(251, `"a"`)), "record.tags", "at most 250"},
		{KindProduct, product(`,"tags":["a",""]`), "record.tags[1]", "blank"},
		{KindProduct, product(`,"tags":[null]`), "record.tags[0]", "blank"},
		{KindProduct, product(`,"tags":["` + strings.Repeat("é", 256) + `"]`), "record.tags[0]", "at most 255 characters"},
		{KindProduct, product(`,"attributes":[]`), "record.attributes", "must be an object"},
		{KindProduct, product(`,"attributes":{"a":1,"a":2}`), "record.attributes.a", "once"},
		{KindProduct, product(`,"attributes":{"a":[1e309]}`), "record.attributes.a[0]", "as a double can hold"},
		{KindProduct, product(`,"attributes":` + nest(9)), "record.attributes", "8 levels"},
		{KindProduct, product(`,"attributes":{"a":"` + strings.Repeat("x", 32<<10) + `"}`), "record.attributes", "32768 bytes"},
		{KindProduct, product(`,"description":"` + strings.Repeat("x", 128<<10) + `"`), "record", "at most 131072"},
		{KindCategory, `{` + id + `,"name":"a","order":"1"}`, "record.order", "whole number"},
		{KindCategory, `{` + id + `,"name":"a","parentId":""}`, "record.parentId", "UUID"},
		{KindCustomer, `{` + id + `,"currency":"eur"}`, "record.currency", "ISO 4217"},
		{KindCustomer, `{` + id + `,"addresses":[{"country":"Germany"}]}`, "record.addresses[0].country", "ISO 3166"},
		{KindCustomer, `{` + id + `,"addresses":{}}`, "record.addresses", "array"},
		{KindOrder, `{` + id + `,"currency":"EUR"}`, "record.orderNumber", "is required"},
		{KindOrder, `{` + id + `,"orderNumber":"1"}`, "record.currency", "is required"},
		{KindOrder, order(`,"items":[{"quantity":1,"unitPrice":1}]`), "record.items[0].name", "is required"},
		{KindOrder, order(`,"items":[{"name":"a","unitPrice":1}]`), "record.items[0].quantity", "is required"},
		{KindOrder, order(`,"items":[{"name":"a","quantity":1}]`), "record.items[0].unitPrice", "is required"},
		{KindOrder, order(`,"items":[{"name":"a","quantity":-0.0001,"unitPrice":1}]`), "record.items[0].quantity", "must be 0 or more"},
		{KindOrder, order(`,"items":[{"name":"a","quantity":1,"unitPrice":-1}]`), "record.items[0].unitPrice", "must be 0 or more"},
		{KindOrder, item(`,"fulfilledQuantity":-1`), "record.items[0].fulfilledQuantity", "must be 0 or more"},
		{KindOrder, item(`,"refundedQuantity":-1`), "record.items[0].refundedQuantity", "must be 0 or more"},
		{KindOrder, order(`,"shipments":[{},{"items":[{"quantity":-1}]}]`), "record.shipments[1].items[0].quantity", "must be 0 or more"},
		{KindOrder, order(`,"refunds":[{"items":[{},{"quantity":-1}]}]`), "record.refunds[0].items[1].quantity", "must be 0 or more"},
		{KindOrder, item(`,"taxRate":1001`), "record.items[0].taxRate", "between 0 and 1000"},
		{KindOrder, item(`,"attributes":` + nest(9)), "record.items[0].attributes", "8 levels"},
		{KindOrder, order(`,"items":` + list(1001, `{"name":"a","quantity":1,"unitPrice":1}`)), "record.items", "at most 1000"},
		{KindOrder, order(`,"items":[{"name":"a","quantity":99999999999,"unitPrice":2}]`), "record.items[0].subtotal", "would be past"},
		{KindOrder, item(`,"subtotal":90000000000,"taxRate":20`), "record.items[0].total", "would be past"},
		{
			KindOrder, order(`,"items":` + list(2, `{"name":"a","quantity":1,"unitPrice":50000000000}`)),
			"record.subtotal", "would be past",
		},
		{KindOrder, order(`,"refunds":[{"amount":99999999999},{"amount":99999999999}]`), "record.refundedTotal", "would be past"},
		{KindOrder, order(`,"shipments":[{"items":[{"quantity":true}]}]`), "record.shipments[0].items[0].quantity", "number"},
		{KindInvoice, `{` + id + `}`, "record.currency", "is required"},
		{KindInvoice, `{` + id + `,"currency":"EUR","status":"ISSUED"}`, "record.invoiceNumber", "is required"},
		{
			KindInvoice, `{` + id + `,"currency":"EUR","lines":[{"quantity":1,"unitPrice":1}]}`,
			"record.lines[0].description", "is required",
		},
		{
			KindInvoice, `{` + id + `,"currency":"EUR","lines":[{"description":"a","quantity":-1,"unitPrice":1}]}`,
			"record.lines[0].quantity", "must be 0 or more",
		},
		{
			KindInvoice, `{` + id + `,"currency":"EUR","type":"INVOICE","lines":[{"description":"a","quantity":1,"unitPrice":-1}]}`,
			"record.lines[0].unitPrice", "must be 0 or more",
		},
		{KindInvoice, `{` + id + `,"currency":"EUR","taxLines":[{"taxRate":-1}]}`, "record.taxLines[0].taxRate", "between"},
		{KindStock, `{"onHand":1}`, "record.productId", "is required"},
		{KindStock, `{"productId":"` + testID.String() + `"}`, "record.onHand", "is required"},
		{KindStock, stock(`,` + id), "record.id", "must be absent or " + StockID(testOrg, testID, nil, nil).String()},
		{KindStock, stock(`,"reserved":-0.0001`), "record.reserved", "must be 0 or more"},
		{KindStock, stock(`,"reserved":99999999999.9999`), "record.reserved", "in the range of quantities"},
		{KindStock, stock(`,"locationRef":"` + strings.Repeat("é", 121) + `"`), "record.locationRef", "at most 120 characters"},
	} {
		t.Run(fmt.Sprintf("%v_%v", tt.kind, tt.record), func(t *testing.T) {
			next, err := Apply(nil, put(tt.kind, tt.record), testNow)
			f, ok := fault.As(err)
			if !ok || next != nil || len(f.Details) == 0 {
				t.Errorf("%s %.120s: %+v, %v; want a refusal of %s", tt.kind, tt.record, next, err, tt.field)
				return
			}
			if f.Details[0].Field != tt.field || !strings.Contains(f.Message, tt.contains) {
				t.Errorf("%s %.120s:\n got %s: %s\nwant %s: …%s…", tt.kind, tt.record, f.Details[0].Field, f.Message, tt.field, tt.contains)
			}
		})
	}
}

func TestWhatIsAtABoundIsKept(t *testing.T) {
	entries := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	record := `{"id":"` + testID.String() + `","name":"a","taxRate":1000,"sellingPrice":99999999999.9999,` +
		`"images":[` + entries(100, `"i"`) + `],"tags":[` + entries(250, `"`+strings.Repeat("é", 200)+`"`) + `],` +
		`"attributes":` + strings.Repeat(`{"a":`, 8) + `1` + strings.Repeat(`}`, 8) + `}`
	store(t, nil, put(KindProduct, record), testNow)

	store(t, nil, put(KindStock, `{"productId":"`+testID.String()+`","locationRef":"`+strings.Repeat("é", 120)+`","onHand":-99999999999.9999}`), testNow)

	attributes := `{"a":"` + strings.Repeat("x", 32<<10-len(`{"a":""}`)) + `"}`
	store(t, nil, put(KindProduct, `{"id":"`+testID.String()+`","name":"a","attributes":`+attributes+`}`), testNow)

	sized := func(n int) Change {
		return put(KindProduct, `{"id":"`+testID.String()+`","name":"a","description":"`+strings.Repeat("x", n)+`"}`)
	}
	frame := len(store(t, nil, sized(1), testNow).Doc) - 1
	store(t, nil, sized(MaxRecordBytes-frame), testNow)
	if next, err := Apply(nil, sized(MaxRecordBytes-frame+1), testNow); err == nil {
		t.Errorf("one byte over the bound is stored: %d bytes", len(next.Doc))
	}
}

func TestADeleteReadsOnlyTheIdentifiers(t *testing.T) {
	for record, field := range map[string]string{
		`{"id":"0192F0C2-1B7D-7E11-8A4C-51F0A2B3C4D5"}`:                                 "",
		`{"id":"` + testID.String() + `","shoeSize":44,"name":5}`:                       "",
		`{"id":"` + testID.String() + `","organizationId":null}`:                        "",
		`{"id":"` + testID.String() + `","organizationId":"` + testOrg.String() + `"}`:  "",
		`{"id":"` + testID.String() + `","organizationId":"` + testSite.String() + `"}`: "record.organizationId",
		`{"id":"` + testID.String() + `","organizationId":7}`:                           "record.organizationId",
		`{"id":7}`: "record.id",
		`{}`:       "record.id",
	} {
		t.Run(record, func(t *testing.T) {
			c := put(KindProduct, record)
			c.Op = OpDelete
			next, err := Apply(nil, c, testNow)
			got := ""
			if f, ok := fault.As(err); ok {
				got = f.Details[0].Field
			}
			if got != field || (err == nil) != (next != nil && next.ID == testID) {
				t.Errorf("%+v, %v; want a refusal of %q", next, err, field)
			}
		})
	}
}

func TestAnUnreadableDocumentIsNoRefusal(t *testing.T) {
	old := &Stored{Kind: KindCategory, ID: testID, OrganizationID: testOrg, Doc: jsontext.Value(`{"id":`)}
	_, err := Apply(old, put(KindCategory, `{"id":"`+testID.String()+`","name":"a"}`), testNow)
	if _, refused := fault.As(err); err == nil || refused {
		t.Errorf("Apply over a broken document: %v, want an error that is no fault", err)
	}
}

func TestARowOfStockIsKnownByWhatItIsOf(t *testing.T) {
	site, berlin := testSite, "Berlin"
	id := func(record string, op Op) (value.ID, error) {
		c := put(KindStock, record)
		c.Op = op
		return Identify(c)
	}
	product := `"productId":"` + testID.String() + `"`
	full := product + `,"siteId":"` + testSite.String() + `","locationRef":" Berlin "`
	for record, want := range map[string]value.ID{
		`{` + product + `}`: StockID(testOrg, testID, nil, nil),
		`{` + product + `,"siteId":null,"locationRef":""}`: StockID(testOrg, testID, nil, nil),
		`{` + full + `}`: StockID(testOrg, testID, &site, &berlin),
		`{` + full + `,"id":"` + StockID(testOrg, testID, &site, &berlin).String() + `"}`:     StockID(testOrg, testID, &site, &berlin),
		`{` + product + `,"locationRef":"` + testSite.String() + `"}`:                         StockID(testOrg, testID, nil, new(testSite.String())),
		`{"id":"` + StockID(testOrg, testID, nil, nil).String() + `","siteId":null,"name":1}`: StockID(testOrg, testID, nil, nil),
	} {
		if got, err := id(record, OpDelete); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", record, got, err, want)
		}
	}
	for record, field := range map[string]string{
		`{}`: "record.productId",
		`{` + full + `,"id":"` + StockID(testOrg, testID, nil, nil).String() + `"}`: "record.id",
		`{` + product + `,"siteId":5}`:      "record.siteId",
		`{` + product + `,"locationRef":5}`: "record.locationRef",
	} {
		_, err := id(record, OpPut)
		if f, ok := fault.As(err); !ok || f.Details[0].Field != field {
			t.Errorf("%s: %v, want a refusal of %s", record, err, field)
		}
	}
	if StockID(testOrg, testID, &site, nil) == StockID(testID, testID, &site, nil) {
		t.Error("rows of two organizations have one id")
	}
}

// Of equal versions of a source the later to arrive counts, in whichever order ingest
// meets them; a higher version counts whenever it arrived.
func TestLaterWinsAmongEqualVersions(t *testing.T) {
	id := value.NewID()
	change := func(name string, version int64, arrived value.Time) Change {
		return Change{
			OrganizationID: id, Kind: KindProduct, Op: OpPut, Version: &version, Arrived: arrived, LaterWins: true,
			Record: fmt.Appendf(nil, `{"id":%q,"name":%q}`, id, name),
		}
	}
	first, second, newer := change("first", 1, 10), change("second", 1, 11), change("newer", 2, 9)
	gone := second
	gone.Op = OpDelete
	for _, row := range []struct {
		name    string
		changes []Change
		want    string
	}{
		{"in order", []Change{first, second}, "second"},
		{"out of order", []Change{second, first}, "second"},
		{"a newer version that arrived first", []Change{second, newer}, "newer"},
		{"an older version that arrived last", []Change{newer, second}, "newer"},
		{"a later deletion", []Change{gone, first}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var stored *Stored
			for _, c := range row.changes {
				next, err := Apply(stored, c, 100)
				if err != nil {
					t.Fatal(err)
				}
				if next != nil {
					stored = next
				}
			}
			if got := string(stored.Doc); row.want == "" != stored.Deleted || !strings.Contains(got, row.want) {
				t.Errorf("stored %s, want %q", got, row.want)
			}
		})
	}
}
