package records_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// required are the fields without which a record of a kind is refused.
var required = map[commerce.Kind]map[string]any{
	commerce.KindProduct: {"name": "p"}, commerce.KindCategory: {"name": "c"}, commerce.KindCustomer: {},
	commerce.KindOrder: {"orderNumber": "1", "currency": "EUR"}, commerce.KindInvoice: {"currency": "EUR"},
}

// least stores the least that is a record.
func (w *harness) least(org value.ID, kind commerce.Kind, id value.ID) *commerce.Stored {
	w.t.Helper()
	m := map[string]any{"id": id}
	for name, v := range required[kind] {
		m[name] = v
	}
	return w.putFor(org, kind, m)
}

// expectDeletions fails unless the answer is a page of these deletions.
func (a answer) expectDeletions(t tester, want ...*commerce.Stored) {
	t.Helper()
	entries := []commerce.Deletion{}
	for _, s := range want {
		entries = append(entries, commerce.Deletion{ID: s.ID, Kind: s.Kind, DeletedAt: s.Revision})
	}
	expected, err := json.Marshal(entries)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := json.Marshal(a.page(t).Data)
	if err != nil || string(got) != string(expected) {
		t.Errorf("%s:\n got %s, %v\nwant %s", a.asked, got, err, expected)
	}
}

func TestDeletionsAreOfTheKindsThatACredentialMayRead(t *testing.T) {
	w := newHarness(t, present)
	gone := map[commerce.Kind]*commerce.Stored{}
	for _, kind := range commerce.Kinds() {
		w.least(ours, kind, numbered(1)) // one id of five kinds
		w.advance(time.Millisecond)
		gone[kind] = w.remove(kind, numbered(1))
		w.index() // visible at once, so that the order is that of the deletions
	}
	product, category, order, customer, invoice := gone["product"], gone["category"], gone["order"], gone["customer"], gone["invoice"]
	w.settle()
	api := w.serve()
	for i, tt := range []struct {
		p     *auth.Principal
		query string
		want  []*commerce.Stored
	}{
		{user(), "", []*commerce.Stored{invoice, customer, order, category, product}},
		{user(), "?orderDirection=asc", []*commerce.Stored{product, category, order, customer, invoice}},
		{user(), "?orderBy=deletedAt&limit=2&page=2", []*commerce.Stored{order, category}},
		{user(), "?kind=order,product", []*commerce.Stored{order, product}},
		{user(), "?deletedFrom=" + order.Revision.String(), []*commerce.Stored{invoice, customer, order}},
		{user(), "?deletedTo=" + order.Revision.String(), []*commerce.Stored{category, product}},
		{user(), "?kind=order&deletedTo=" + order.Revision.String(), nil},
		{narrowed(user(), auth.InvoicesRead, auth.DevelopersRead), "", []*commerce.Stored{invoice}},
		{narrowed(key(), auth.OrdersRead, auth.CustomersRead), "", []*commerce.Stored{customer, order}},
		{narrowed(key(), auth.OrdersRead), "?kind=order", []*commerce.Stored{order}},
		{key(siteC), "", []*commerce.Stored{invoice, customer, order, category, product}},
		{of(theirs, user()), "", nil},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			ask(t, api, tt.p, "/api/deletions"+tt.query).expectDeletions(t, tt.want...)
		})
	}
}

func TestDeletedComparesWithWhenADeletionBecameVisible(t *testing.T) {
	w := newHarness(t, present)
	late := w.remove(commerce.KindProduct, numbered(1))
	w.advance(10 * time.Minute) // the indexer is held back
	visible := value.TimeOf(w.clock())
	w.settle()
	api := w.serve()
	for query, want := range map[string][]*commerce.Stored{
		"deletedFrom=" + visible.String():       {late},
		"deletedFrom=" + (visible + 1).String(): nil,
		"deletedTo=" + visible.String():         nil,
		"deletedTo=" + (visible + 1).String():   {late},
	} {
		t.Run(query, func(t *testing.T) { ask(t, api, user(), "/api/deletions?"+query).expectDeletions(t, want...) })
	}
}

func TestWhatIsPutAgainLeavesTheDeletions(t *testing.T) {
	w := newHarness(t, present)
	const kind = commerce.KindCustomer
	w.least(ours, kind, numbered(1))
	w.settle()
	api := w.serve()
	ask(t, api, user(), "/api/deletions").expectDeletions(t)
	for range 3 {
		gone := w.remove(kind, numbered(1))
		w.settle()
		ask(t, api, user(), "/api/deletions").expectDeletions(t, gone)
		ask(t, w.serve(), user(), "/api/deletions").expectDeletions(t, gone)
		ask(t, api, user(), "/api/customers").expect(t)
		again := w.least(ours, kind, numbered(1))
		w.settle()
		ask(t, api, user(), "/api/deletions").expectDeletions(t)
		ask(t, w.serve(), user(), "/api/deletions").expectDeletions(t)
		ask(t, api, user(), "/api/customers").expect(t, again)
	}
	never := w.remove(kind, numbered(2))
	w.settle()
	ask(t, api, user(), "/api/deletions").expectDeletions(t, never)
}

func TestDeletionsAreForgottenAfterNinetyDays(t *testing.T) {
	w := newHarness(t, present)
	old := w.remove(commerce.KindOrder, numbered(1))
	w.advance(24 * time.Hour)
	young := w.remove(commerce.KindOrder, numbered(2))
	w.settle()
	w.flush(w.lists.Deletions)
	w.set(old.Revision.Std().Add(commerce.TombstoneAge - time.Second))
	api := w.serve()
	ask(t, api, user(), "/api/deletions").expectDeletions(t, young, old)
	w.advance(2 * time.Second)
	ask(t, api, user(), "/api/deletions").expectDeletions(t, young)
	ask(t, w.serve(), user(), "/api/deletions").expectDeletions(t, young)
	if a := ask(t, api, user(), "/api/deletions"); a.page(t).Meta.Total != 1 || !strings.Contains(a.header.Get("Link"), "/api/deletions?page=1") {
		t.Errorf("%s: got %s and Link %s, want a total of 1", a.asked, a.body, a.header.Get("Link"))
	}
}

func TestAWalkThroughDeletionsMissesNoneThatSharesAnID(t *testing.T) {
	w := newHarness(t, present)
	want := map[commerce.Deletion]bool{}
	for n := range 4 {
		for i, kind := range commerce.Kinds() {
			if n == 2 && i > 0 {
				break
			}
			gone := w.remove(kind, numbered(n+1))
			want[commerce.Deletion{ID: gone.ID, Kind: kind, DeletedAt: gone.Revision}] = true
		}
	}
	w.settle()
	api := w.serve()
	got := 0
	for target := "/api/deletions?limit=3&afterId=" + (value.ID{}).String(); target != ""; {
		a := ask(t, api, user(), target)
		for _, raw := range a.page(t).Data {
			var d commerce.Deletion
			if err := json.Unmarshal(raw, &d); err != nil || !want[d] {
				t.Fatalf("%s: got %s, %v, again or not deleted", a.asked, raw, err)
			}
			delete(want, d)
			got++
		}
		if target = strings.TrimPrefix(linkTo(a, "next"), "https://host/prod"); got > 16 {
			break
		}
	}
	if got != 16 || len(want) > 0 {
		t.Errorf("walked %d, missed %v; want 16 and none", got, want)
	}
}
