package records_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index/views"
)

// TestWhatChangedAfterTheViewIsCheckedAgain changes records between the look
// that filled a view and the next one within its freshness.
func TestWhatChangedAfterTheViewIsCheckedAgain(t *testing.T) {
	const sku = "/api/products?sku=wanted"
	first := map[string]any{"id": numbered(1), "name": "before", "sku": "wanted", "isActive": true}
	with := func(name string, v any) map[string]any {
		m := map[string]any{}
		for k, v := range first {
			m[k] = v
		}
		m["name"], m[name] = "after", v
		return m
	}
	for _, tt := range []struct {
		name   string
		change func(w *harness)
		query  string
		shown  string // the record's name within the freshness; "" when it is left out
	}{
		{"moved to a site that the key may not see", func(w *harness) { w.put(commerce.KindProduct, with("sku", "wanted"), siteB) }, sku, ""},
		{"moved to every site", func(w *harness) { w.put(commerce.KindProduct, with("sku", "wanted")) }, sku, "after"},
		{"moved to one more site", func(w *harness) { w.put(commerce.KindProduct, with("sku", "wanted"), siteA, siteB) }, sku, "after"},
		{"no longer of the filter", func(w *harness) { w.put(commerce.KindProduct, with("sku", "other"), siteA) }, sku, ""},
		{"no longer of the search", func(w *harness) { w.put(commerce.KindProduct, with("sku", "other"), siteA) }, "/api/products?search=want", ""},
		{"no longer active", func(w *harness) { w.put(commerce.KindProduct, with("isActive", false), siteA) }, sku + "&isActive=true", ""},
		{"changed beside the filter", func(w *harness) { w.put(commerce.KindProduct, with("isActive", false), siteA) }, sku, "after"},
		{"deleted", func(w *harness) { w.remove(commerce.KindProduct, numbered(1)) }, sku, ""},
		{"deleted and created again", func(w *harness) {
			w.remove(commerce.KindProduct, numbered(1))
			w.put(commerce.KindProduct, with("sku", "wanted"), siteA)
		}, sku, "after"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newHarness(t, present)
			w.put(commerce.KindProduct, first, siteA)
			w.settle()
			cold, warm := w.serve(), w.serve()
			ask(t, cold, key(siteA), "/api/products?search=nowhere").page(t)
			known := ask(t, warm, key(siteA), tt.query)
			w.Pass(views.Freshness - time.Millisecond)
			tt.change(w)

			a := ask(t, cold, key(siteA), tt.query)
			if got := names(t, a); got != tt.shown || a.page(t).Meta.Total != 1 {
				t.Errorf("%s: got %q and %+v, want %q of 1, the total of the view", a.asked, got, a.page(t).Meta, tt.shown)
			}
			if a := ask(t, warm, key(siteA), tt.query); string(a.body) != string(known.body) {
				t.Errorf("%s, which has the record as the view knows it: got %s, want %s", a.asked, a.body, known.body)
			}
			w.settle()
			for _, api := range []http.Handler{cold, warm} {
				a := ask(t, api, key(siteA), tt.query)
				if got := names(t, a); got != tt.shown || (a.page(t).Meta.Total == 1) != (tt.shown != "") {
					t.Errorf("%s, two seconds later: got %q and %+v, want %q", a.asked, got, a.page(t).Meta, tt.shown)
				}
			}
		})
	}
}

// names are those of the products on a page.
func names(t *testing.T, a answer) string {
	t.Helper()
	var found []string
	for _, raw := range a.page(t).Data {
		_, rest, _ := strings.Cut(string(raw), `"name":"`)
		name, _, _ := strings.Cut(rest, `"`)
		found = append(found, name)
	}
	return strings.Join(found, " ")
}

func TestAWriteIsReadAtOnceByItsIDAndSoonInLists(t *testing.T) {
	w := newHarness(t, present)
	api := w.serve()
	ask(t, api, user(), "/api/products").expect(t)
	stored := w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "p"})
	if a := ask(t, api, user(), "/api/products/"+stored.ID.String()); a.status != 200 {
		t.Errorf("%s: got %d, want the record", a.asked, a.status)
	}
	w.index()
	w.Pass(views.Freshness)
	ask(t, api, user(), "/api/products").expect(t, stored)
}

func TestAnInvoiceBecomesOverdueWithoutAnyWrite(t *testing.T) {
	w := newHarness(t, present)
	due := value.TimeOf(present) + 60_000
	invoice := func(n int, fields map[string]any) *commerce.Stored {
		m := map[string]any{"id": numbered(n), "currency": "EUR", "invoiceNumber": "R", "status": "ISSUED", "dueAt": due, "amountDue": 1, "total": 1}
		for name, v := range fields {
			m[name] = v
		}
		return w.put(commerce.KindInvoice, m)
	}
	issued := invoice(1, nil)
	partly := invoice(2, map[string]any{"status": "PARTIALLY_PAID", "amountDue": 0.0001})
	var never []*commerce.Stored
	for i, fields := range []map[string]any{
		{"status": "PAID"}, {"status": "DRAFT"}, {"status": "VOID"}, {"type": "CREDIT_NOTE"}, {"amountDue": 0}, {"dueAt": nil},
	} {
		never = append(never, invoice(3+i, fields))
	}
	w.settle()
	api := w.serve()
	at := func(now value.Time) (list, item answer) {
		w.Set(now.Std())
		return ask(t, api, user(), "/api/invoices?orderBy=createdAt&orderDirection=asc"), ask(t, api, user(), "/api/invoices/"+issued.ID.String())
	}
	const flag = `"isOverdue":true`
	list, item := at(due)
	if strings.Contains(string(list.body)+string(item.body), flag) {
		t.Errorf("at dueAt: got %s, want nothing overdue", list.body)
	}
	ask(t, api, user(), "/api/invoices?isOverdue=true").expect(t)
	listAfter, itemAfter := at(due + 1)
	if strings.Count(string(listAfter.body), flag) != 2 || !strings.Contains(string(itemAfter.body), flag) {
		t.Errorf("after dueAt: got %s, want two overdue", listAfter.body)
	}
	if list.header.Get("ETag") == listAfter.header.Get("ETag") || item.header.Get("ETag") == itemAfter.header.Get("ETag") {
		t.Error("after dueAt: the tags are the same")
	}
	ask(t, api, user(), "/api/invoices?isOverdue=true&orderBy=createdAt").expect(t, partly, issued)
	ask(t, api, user(), "/api/invoices?isOverdue=false&orderBy=createdAt").expect(t, reversed(never)...)
	ask(t, api, key(siteA), "/api/invoices?isOverdue=true").expect(t)
}

func TestAListIsOfOneMoment(t *testing.T) {
	s := newShelf()
	s.put(t, commerce.KindInvoice, map[string]any{
		"id": numbered(1), "currency": "EUR", "invoiceNumber": "R", "status": "ISSUED", "amountDue": 1, "dueAt": value.TimeOf(present) - 5,
	})
	for steps := range 12 {
		now := present.Add(-time.Duration(steps) * time.Millisecond)
		a := ask(t, s.serveAt(func() time.Time {
			now = now.Add(time.Millisecond)
			return now
		}, 0), user(), "/api/invoices?isOverdue=false")
		if strings.Contains(string(a.body), `"isOverdue":true`) {
			t.Errorf("%s: got %s", a.asked, a.body)
		}
	}
}

// The records of TestAnswersEqualAPlainComputation have trees of eight categories,
// with cycles; this one is deeper, and breaks.
func TestDescendants(t *testing.T) {
	w := newHarness(t, present)
	const deep = 40
	for n := 1; n <= deep; n++ {
		m := map[string]any{"id": numbered(n), "name": "c"}
		if n > 1 {
			m["parentId"] = numbered(n - 1)
		}
		w.put(commerce.KindCategory, m)
	}
	product := func(n, of int) *commerce.Stored {
		return w.put(commerce.KindProduct, map[string]any{"id": numbered(1000 + n), "name": "p", "categoryId": numbered(of)})
	}
	top, bottom := product(1, 1), product(2, deep)
	w.settle()
	api := w.serve()
	ofTop := "/api/products?includeDescendants=true&categoryId=" + numbered(1).String()
	ask(t, api, user(), ofTop).expect(t, bottom, top)
	w.remove(commerce.KindCategory, numbered(2))
	w.settle()
	ask(t, api, user(), ofTop).expect(t, top)
}
