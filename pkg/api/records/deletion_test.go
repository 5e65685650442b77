package records_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// required are the fields without which a record of a kind is refused.
var required = map[commerce.Kind]map[string]any{
	commerce.KindProduct: {"name": "p"}, commerce.KindCategory: {"name": "c"}, commerce.KindCustomer: {},
	commerce.KindOrder: {"orderNumber": "1", "currency": "EUR"}, commerce.KindInvoice: {"currency": "EUR"},
	commerce.KindStock: {"onHand": 0},
}

// least stores the least that is a record.
func (w *harness) least(org value.ID, kind commerce.Kind, id value.ID) *commerce.Stored {
	w.t.Helper()
	m := map[string]any{"id": id}
	if kind == commerce.KindStock {
		m = map[string]any{"productId": id}
	}
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

func TestDeletionsAreForgottenAfterNinetyDays(t *testing.T) {
	w := newHarness(t, present)
	old := w.remove(commerce.KindOrder, numbered(1))
	w.Pass(24 * time.Hour)
	young := w.remove(commerce.KindOrder, numbered(2))
	w.settle()
	w.flush(w.lists.Deletions)
	w.Set(old.Revision.Std().Add(commerce.TombstoneAge - time.Second))
	api := w.serve()
	ask(t, api, user(), "/api/deletions").expectDeletions(t, young, old)
	w.Pass(2 * time.Second)
	ask(t, api, user(), "/api/deletions").expectDeletions(t, young)
	ask(t, w.serve(), user(), "/api/deletions").expectDeletions(t, young)
	if a := ask(t, api, user(), "/api/deletions"); a.page(t).Meta.Total != 1 || !strings.Contains(a.header.Get("Link"), "/api/deletions?page=1") {
		t.Errorf("%s: got %s and Link %s, want a total of 1", a.asked, a.body, a.header.Get("Link"))
	}
}
