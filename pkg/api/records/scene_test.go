package records_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index/views"
)

// scene is a harness full of random records of two organizations, which share
// their ids, and two instances over it: one that was there from the start and
// followed every change, and one that comes last.
type scene struct {
	*harness
	random  *rand.Rand
	ids     []value.ID
	history []change
	warm    http.Handler
	cold    http.Handler
	live    map[value.ID]map[commerce.Kind][]*plainRecord // by organization
	checked map[string]*plainRecord                       // by JSON that was found to be right
}

// recordsPerKind is how many ids of a kind an organization has.
const recordsPerKind = 36

func newScene(t testing.TB, seed uint64) *scene {
	t.Helper()
	s := &scene{
		harness: newHarness(t, present.Add(-40*time.Hour)), random: rand.New(rand.NewPCG(seed, 0)), checked: map[string]*plainRecord{},
	}
	for range recordsPerKind {
		id := value.ID{6: 0x40, 8: 0x80}
		for i := range id {
			id[i] |= byte(s.random.UintN(256))
		}
		s.ids = append(s.ids, id)
	}
	s.warm = s.serve()
	s.look(t)
	// Long ago, and indexed at once: the change log does not reach so far back.
	for _, org := range []value.ID{ours, theirs} {
		for _, kind := range commerce.Kinds() {
			for _, id := range s.ids[:recordsPerKind/2] {
				s.put(org, kind, id)
			}
		}
	}
	s.flush()
	s.look(t)
	s.Pass(30 * time.Hour)
	for range 6 {
		s.round(t)
	}
	s.reindex(s.history[s.random.IntN(len(s.history)):])
	s.Set(present)
	s.cold = s.serve()
	s.remember(t)
	return s
}

// look asks the warm instance for every list, so that it has views of them.
func (s *scene) look(t testing.TB) {
	t.Helper()
	for _, org := range []value.ID{ours, theirs} {
		for _, kind := range commerce.Kinds() {
			ask(t, s.warm, of(org, user()), "/api/"+kind.Plural()).page(t)
		}
		ask(t, s.warm, of(org, user()), "/api/deletions").page(t)
	}
}

// flush indexes what waits.
func (s *scene) flush() {
	s.history = append(s.history, s.waiting...)
	s.index()
}

// round changes a part of the records, some of them more than once, indexes
// the changes a little later, and has the indexer process others again.
func (s *scene) round(t testing.TB) {
	t.Helper()
	for _, org := range []value.ID{ours, theirs} {
		for _, kind := range commerce.Kinds() {
			for range 1 + s.random.IntN(8) {
				id := s.ids[s.random.IntN(len(s.ids))]
				if s.random.IntN(4) == 0 {
					named, err := json.Marshal(named(kind, id))
					if err != nil {
						t.Fatal(err)
					}
					s.apply(commerce.Change{Kind: kind, Op: commerce.OpDelete, OrganizationID: org, Record: named})
				} else {
					s.put(org, kind, id)
				}
				s.Pass(time.Duration(s.random.IntN(3)) * time.Millisecond)
			}
		}
	}
	s.Pass(time.Duration(s.random.IntN(3000)) * time.Millisecond)
	s.flush()
	if s.random.IntN(2) == 0 {
		from := s.random.IntN(len(s.history))
		s.reindex(s.history[from:min(from+20, len(s.history))])
	}
	if s.random.IntN(2) == 0 {
		s.Pass(views.Freshness)
		s.look(t)
	}
	s.Pass(time.Duration(s.random.IntN(60)) * time.Minute)
}

// put stores random content under an id, or raises the version of what is
// stored.
func (s *scene) put(org value.ID, kind commerce.Kind, id value.ID) {
	s.t.Helper()
	c := commerce.Change{Kind: kind, Op: commerce.OpPut, OrganizationID: org}
	old := s.stored[recordKey{org, kind, id}]
	if old != nil && !old.Deleted && s.random.IntN(6) == 0 {
		version := int64(1)
		if old.Version != nil {
			version += *old.Version
		}
		c.Record, c.Version = old.Doc, &version
		s.apply(c)
		return
	}
	doc, err := json.Marshal(s.record(kind, id), json.Deterministic(true))
	if err != nil {
		s.t.Fatal(err)
	}
	if c.Record = doc; kind == commerce.KindProduct {
		c.Sites = commerce.Sites{Given: true, Value: s.pick([]value.ID(nil), []value.ID{siteA}, []value.ID{siteB}, []value.ID{siteA, siteB}).([]value.ID)}
		c.ExternalRef = commerce.Reference{Given: true, Value: s.pick("", s.word()).(string)}
	}
	s.apply(c)
}

// remember makes the plain records of what is stored in the end.
func (s *scene) remember(t testing.TB) {
	t.Helper()
	s.live = map[value.ID]map[commerce.Kind][]*plainRecord{ours: {}, theirs: {}}
	for key, stored := range s.stored {
		if !stored.Deleted {
			s.live[key.org][key.kind] = append(s.live[key.org][key.kind], s.plainRecord(t, stored))
		}
	}
	for _, kinds := range s.live {
		for _, found := range kinds {
			slices.SortFunc(found, func(a, b *plainRecord) int { return strings.Compare(a.id, b.id) })
		}
	}
}

// texts are what random records are called: cases, accents composed and not,
// letters with a stroke, ligatures, other widths and scripts, blanks.
var texts = []string{
	"Linen shirt", "LINEN SHIRT", "linen-shirt", "Straße", "STRASSE", "strasse 7", "İstanbul", "istanbul", "ISTANBUL", "ıstanbul",
	"Élan", "E\u0301lan", "elan", "Øre", "ore", "Łódź", "Lodz", "đak", "Æsir", "aesir", "Œuvre", "ŒUVRE", "ﬁne ﬂour", "fine flour",
	"ＦＵＬＬ　ｗｉｄｔｈ", "full width", "Σίσυφος", "ΣΙΣΥΦΟΣ", "中文 名字", "한글", "\u1112\u1161\u11ab글", "🙂 mug", "№ 5", "½ l", "rock´n´roll",
	"\u0301", "A-1", "a-1", "a_1", "A1", "100%", `quote " \ slash`, ",comma,", "tab\tand\nline", "zzz", "\U0010FFFD", "ß", "ss",
}

func (s *scene) pick(of ...any) any { return of[s.random.IntN(len(of))] }

func (s *scene) word() string { return texts[s.random.IntN(len(texts))] }

// orNull is v or null, or v left out.
func (s *scene) orNull(m map[string]any, name string, v any) {
	switch s.random.IntN(4) {
	case 0:
	case 1:
		m[name] = nil
	default:
		m[name] = v
	}
}

// sometimes sets a field that may be absent but not null.
func (s *scene) sometimes(m map[string]any, name string, v any) {
	if s.random.IntN(4) > 0 {
		m[name] = v
	}
}

// few is one of the first ids, so that references meet.
func (s *scene) few() value.ID { return s.ids[s.random.IntN(8)] }

// moments are the times of random records, around the present and the ends
// of the ranges that are asked for.
var moments = []string{
	"1969-12-31T23:59:59.999Z", "2024-02-29T00:00:00.000Z", "2026-11-20T12:00:00.000Z", "2026-11-21T06:35:41.241Z",
	"2026-11-21T06:35:41.242Z", "2026-11-21T06:35:41.243Z", "9999-12-31T23:59:59.999Z",
}

func (s *scene) moment() string { return moments[s.random.IntN(len(moments))] }

func (s *scene) price() any { return s.pick(0, 12.5, 0.0001, jsontext.Value("99999999999.9999"), 7) }

func (s *scene) amount() any {
	return s.pick(s.price(), -5, jsontext.Value("-99999999999.9999"))
}

func (s *scene) count() any { return s.pick(0, -1, 7, int64(math.MaxInt64), int64(math.MinInt64)) }

func (s *scene) enum(of interface{ Values() []string }) string {
	values := of.Values()
	return values[s.random.IntN(len(values))]
}

// record is a random record as a back office sends it.
func (s *scene) record(kind commerce.Kind, id value.ID) map[string]any {
	m := named(kind, id)
	s.sometimes(m, "createdAt", s.moment())
	if kind != commerce.KindProduct && kind != commerce.KindStock {
		s.orNull(m, "siteId", s.pick(siteA, siteB))
	}
	switch kind {
	case commerce.KindProduct:
		s.product(m)
	case commerce.KindCategory:
		m["name"] = s.word()
		s.orNull(m, "slug", s.word())
		s.orNull(m, "parentId", s.few())
		s.sometimes(m, "isActive", s.random.IntN(2) == 0)
		s.sometimes(m, "order", s.count())
	case commerce.KindOrder:
		s.order(m)
	case commerce.KindCustomer:
		s.customer(m)
	case commerce.KindInvoice:
		s.invoice(m)
	case commerce.KindStock:
		m["onHand"] = s.pick(0, -5, 0.0001, 12.5, 7)
		s.sometimes(m, "reserved", s.pick(0, 5, 0.0001))
	}
	return m
}

// named are the members that a record is known by. A product has one row of stock,
// whose site and location follow from its id.
func named(kind commerce.Kind, id value.ID) map[string]any {
	if kind != commerce.KindStock {
		return map[string]any{"id": id}
	}
	return map[string]any{
		"productId": id, "siteId": []*value.ID{nil, &siteA, &siteB}[id[0]%3], "locationRef": texts[int(id[1])%len(texts)],
	}
}

func (s *scene) product(m map[string]any) {
	m["name"] = s.word()
	s.orNull(m, "sku", s.word())
	s.orNull(m, "barcode", s.word())
	s.orNull(m, "categoryId", s.few())
	s.orNull(m, "brandId", s.few())
	s.sometimes(m, "type", s.enum(commerce.ProductType("")))
	s.sometimes(m, "isActive", s.random.IntN(2) == 0)
	s.sometimes(m, "trackInventory", s.random.IntN(2) == 0)
	s.sometimes(m, "tags", []string{s.word(), s.word()}[:s.random.IntN(3)])
	s.orNull(m, "sellingPrice", s.price())
	s.orNull(m, "purchasePrice", s.price())
}

func (s *scene) order(m map[string]any) {
	m["orderNumber"], m["currency"] = s.word(), s.pick("EUR", "USD", "JPY")
	s.sometimes(m, "status", s.enum(commerce.OrderStatus("")))
	s.sometimes(m, "paymentStatus", s.enum(commerce.PaymentStatus("")))
	s.sometimes(m, "fulfillmentStatus", s.enum(commerce.FulfillmentStatus("")))
	s.orNull(m, "customerId", s.few())
	s.orNull(m, "customerName", s.word())
	s.orNull(m, "customerEmail", s.word())
	s.orNull(m, "externalRef", s.word())
	s.sometimes(m, "total", s.amount())
	s.sometimes(m, "placedAt", s.moment())
}

func (s *scene) customer(m map[string]any) {
	for _, name := range []string{"firstName", "lastName", "companyName", "email", "phone", "customerNumber", "externalRef"} {
		s.orNull(m, name, s.word())
	}
	s.sometimes(m, "type", s.enum(commerce.CustomerType("")))
	s.sometimes(m, "isActive", s.random.IntN(2) == 0)
	s.sometimes(m, "totalSpent", s.amount())
	s.sometimes(m, "ordersCount", s.count())
}

func (s *scene) invoice(m map[string]any) {
	m["currency"], m["invoiceNumber"] = s.pick("EUR", "USD", "JPY"), s.word()
	m["metadata"] = map[string]any{"isOverdue": true, "dueAt": "x"}
	m["type"] = s.pick("INVOICE", "INVOICE", "INVOICE", "CREDIT_NOTE")
	m["status"] = s.pick("DRAFT", "ISSUED", "ISSUED", "PARTIALLY_PAID", "PAID", "VOID")
	for _, name := range []string{"customerId", "orderId"} {
		s.orNull(m, name, s.few())
	}
	s.orNull(m, "customerName", s.word())
	s.orNull(m, "externalRef", s.word())
	s.sometimes(m, "total", s.amount())
	m["amountDue"] = s.pick(0, -5, 0.0001, 12.5, 7)
	s.orNull(m, "issuedAt", s.moment())
	s.orNull(m, "dueAt", s.pick(moments[2], moments[3], moments[4], moments[4], moments[5]))
}

// principals are who asks in a scene.
func principals() []*auth.Principal {
	return []*auth.Principal{
		user(), key(siteA), key(siteA, siteB), key(siteC), application(), of(theirs, user()), of(theirs, key(siteB)),
	}
}

// query is the plain form of what a principal asks of a list in the scene.
func (s *scene) query(kind commerce.Kind, p *auth.Principal) *plainQuery {
	return &plainQuery{
		kind: kind, principal: p, values: map[string][]string{}, now: present,
		under: plainUnder(s.live[p.OrganizationID][commerce.KindCategory]),
	}
}

// instances are those of the scene by name.
func (s *scene) instances() map[string]http.Handler {
	return map[string]http.Handler{"warm": s.warm, "cold": s.cold}
}

// check asks both instances and compares their answers with the plain one.
func (s *scene) check(t tester, q *plainQuery) {
	t.Helper()
	for name := range s.instances() {
		s.checkAt(t, name, q)
	}
}

// checkAt asks one instance.
func (s *scene) checkAt(t tester, name string, q *plainQuery) {
	t.Helper()
	want := q.answer(s.live[q.principal.OrganizationID][q.kind])
	target := "/api/" + q.kind.Plural() + "?" + q.values.Encode()
	var header []string
	if q.header != "" {
		header = []string{"X-Site-Id", q.header}
	}
	a := ask(t, s.instances()[name], q.principal, target, header...)
	if got := a.page(t); got.Meta.Total != want.total || got.Meta.TotalPages != want.pageCount ||
		got.Meta.Page != want.page || got.Meta.Limit != want.limit {
		t.Fatalf("%s (%s): got %+v, want %d of %d on %d pages", a.asked, name, got.Meta, len(want.records), want.total, want.pageCount)
	} else if diff := s.differ(q, got.Data, want.records); diff != "" {
		t.Fatalf("%s (%s): %s", a.asked, name, diff)
	}
}

// differ compares the records of an answer, in order, with what they should
// be. A record's JSON is compared field by field the first time that it comes.
func (s *scene) differ(q *plainQuery, got []jsontext.Value, want []*plainRecord) string {
	var gotIDs, wantIDs []string
	for _, r := range want {
		wantIDs = append(wantIDs, r.id)
	}
	for i, raw := range got {
		record := s.checked[string(raw)]
		if record == nil {
			var fields map[string]jsontext.Value
			if err := json.Unmarshal(raw, &fields); err != nil {
				return err.Error()
			}
			id := strings.Trim(string(fields["id"]), `"`)
			if i >= len(want) || want[i].id != id {
				gotIDs = append(gotIDs, id)
				continue
			}
			if diff := differentField(fields, want[i].shape(q.kind, q.now)); diff != "" {
				return id + ": " + diff
			}
			record = want[i]
			s.checked[string(raw)] = record
		}
		gotIDs = append(gotIDs, record.id)
		if i < len(want) && record.id == want[i].id && record != want[i] {
			return record.id + " is another organization's, another kind's or an old one"
		}
	}
	if !slices.Equal(gotIDs, wantIDs) {
		return fmt.Sprintf("\n got %s\nwant %s", gotIDs, wantIDs)
	}
	return ""
}

// differentField names a field that differs.
func differentField(got, want map[string]jsontext.Value) string {
	for name, expected := range want {
		if string(got[name]) != string(expected) {
			return fmt.Sprintf("%s: got %s, want %s", name, got[name], expected)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("got %d fields, want %d", len(got), len(want))
	}
	return ""
}
