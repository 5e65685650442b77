package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
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
