package records_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index/views"
)

func TestOnlyRecordsThatAreNotKnownAreRead(t *testing.T) {
	s := newShelf()
	product := func(n int, name string) map[string]any { return map[string]any{"id": numbered(n), "name": name} }
	s.put(t, commerce.KindProduct, product(1, "a"), product(2, "b"), product(3, "c"))
	api := s.serve()
	page := func(query string, want ...int) string {
		t.Helper()
		s.read = nil
		a := ask(t, api, user(), "/api/products?orderBy=name"+query)
		ids := make([]value.ID, len(want))
		for i, n := range want {
			ids[i] = numbered(n)
		}
		slices.SortFunc(s.read, value.ID.Compare)
		if !slices.Equal(s.read, ids) {
			t.Errorf("%s read %s, want %s", a.asked, join(s.read), join(ids))
		}
		return a.ids(t)
	}
	page("&limit=2", 1, 2)
	page("&limit=2")
	if got, want := page("", 3), join([]value.ID{numbered(1), numbered(2), numbered(3)}); got != want {
		t.Errorf("known and read records: got %s, want %s", got, want)
	}
	page("&orderDirection=desc")
}

func TestAFullCacheChangesNoAnswer(t *testing.T) {
	s := newShelf()
	for n := range 50 {
		s.put(t, commerce.KindProduct, map[string]any{"id": numbered(n), "name": fmt.Sprint("p", n%7), "description": strings.Repeat("x", 40*n)})
	}
	clock := func() time.Time { return present }
	roomy := s.serve()
	for _, bytes := range []int{1, 700, 5_000} {
		tight := s.serveAt(clock, bytes)
		for _, query := range []string{"", "?limit=7&page=3", "?search=p3", "?limit=100&orderBy=name", "", "?limit=7&page=3"} {
			want, got := ask(t, roomy, user(), "/api/products"+query), ask(t, tight, user(), "/api/products"+query)
			if string(got.body) != string(want.body) {
				t.Errorf("%s with a cache of %d bytes: got %s, want %s", got.asked, bytes, got.body, want.body)
			}
		}
	}
}

// TestReadersAndWritersRunBesideOneAnother asks an instance from several
// sides while records change; every answer is of one organization and one
// state.
func TestReadersAndWritersRunBesideOneAnother(t *testing.T) {
	w := newHarness(t, present)
	for _, org := range []value.ID{ours, theirs} {
		for n := range 10 {
			w.putFor(org, commerce.KindProduct, map[string]any{"id": numbered(n), "name": "p"})
		}
	}
	w.settle()
	api := w.serve()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		org := []value.ID{ours, theirs}[i%2]
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a := ask(t, api, of(org, user()), "/api/products?orderBy=name&limit=100")
				if a.status != http.StatusOK {
					t.Errorf("%s: got %d %s", a.asked, a.status, a.body)
					return
				}
				if n := strings.Count(string(a.body), org.String()); n < 9 || n > 10 {
					t.Errorf("%s: got %d records of %s in %s, want 9 or 10", a.asked, n, org, a.body)
					return
				}
				ask(t, api, of(org, user()), "/api/products/"+numbered(1).String())
				ask(t, api, of(org, user()), "/api/deletions")
			}
		})
	}
	for n := range 30 {
		w.putFor(ours, commerce.KindProduct, map[string]any{"id": numbered(n % 9), "name": fmt.Sprint("p", n)})
		if n%3 == 0 {
			w.remove(commerce.KindProduct, numbered(9))
		} else {
			w.least(ours, commerce.KindProduct, numbered(9))
		}
		w.index()
		w.advance(views.Freshness)
	}
	close(stop)
	readers.Wait()
}
