package records_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// fill stores so many products with rising ids and names.
func (w *harness) fill(n int) []*commerce.Stored {
	w.t.Helper()
	stored := make([]*commerce.Stored, n)
	for i := range stored {
		stored[i] = w.put(commerce.KindProduct, map[string]any{"id": numbered(i + 1), "name": fmt.Sprintf("p%03d", i+1)})
	}
	return stored
}

// A client reads page by page to the first that is not full. One that ended in
// the middle, because records were deleted or left the filter after the view, lost
// all that follow.
func TestAPageIsFullUnlessItIsTheLast(t *testing.T) {
	for name, changed := range map[string]map[int]bool{ // by number: whether it is deleted or leaves the filter
		"one deleted":         {3: true},
		"one left the filter": {3: false},
		"some of each":        {1: true, 2: false, 9: true, 10: true, 20: false},
		"a whole page":        {6: true, 7: true, 8: true, 9: true, 10: true},
		"most":                {1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true, 12: true, 13: true},
		"all":                 {1: true, 2: true, 3: true, 4: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, present)
			all := w.fill(20)
			if name == "all" {
				all = all[:4]
				for n := 5; n <= 20; n++ {
					w.remove(commerce.KindProduct, numbered(n))
				}
			}
			w.settle()
			var instances []http.Handler
			for range 4 { // with a view, and without any record
				instances = append(instances, w.serve())
				ask(t, instances[len(instances)-1], user(), "/api/products?search=none")
			}
			var want []string
			for i, s := range all {
				deleted, isChanged := changed[i+1]
				switch {
				case !isChanged:
					want = append(want, s.ID.String())
				case deleted:
					w.remove(commerce.KindProduct, s.ID)
				default:
					w.put(commerce.KindProduct, map[string]any{"id": s.ID, "name": "other"})
				}
			}
			for i, query := range []string{"limit=5&afterId=", "limit=1&afterId=", "limit=5&orderBy=name&page=", "limit=3&orderDirection=asc&page="} {
				var got []string
				for page, next := 1, (value.ID{}).String(); ; page++ {
					from := next
					if strings.HasSuffix(query, "page=") {
						from = strconv.Itoa(page)
					}
					a := ask(t, instances[i], user(), "/api/products?search=p0&"+query+from)
					ids := strings.Fields(a.ids(t))
					if got = append(got, ids...); len(ids) < a.page(t).Meta.Limit {
						break
					}
					if next = ids[len(ids)-1]; from != strconv.Itoa(page) && !strings.Contains(a.header.Get("Link"), "afterId="+next+`>; rel="next"`) {
						t.Errorf("%s: its Link %s does not go on from its last record, %s", a.asked, a.header.Get("Link"), next)
					}
				}
				walked := len(got)
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, want) {
					t.Errorf("%s: got %d of %d:\n got %v\nwant %v", query, len(got), len(want), got, want)
				}
				if strings.HasSuffix(query, "afterId=") && walked != len(want) {
					t.Errorf("%s: got %d records, want %d, each once", query, walked, len(want))
				}
			}
		})
	}
}

func reversed(s []*commerce.Stored) []*commerce.Stored {
	out := make([]*commerce.Stored, len(s))
	for i := range s {
		out[len(s)-1-i] = s[i]
	}
	return out
}

var namedLimit = regexp.MustCompile(`ask with limit=(\d+)`)

// carried is the size of a page as Lambda carries it: a text in the JSON that
// the standard library writes.
func carried(t *testing.T, body []byte) int {
	t.Helper()
	var b strings.Builder
	enc := stdjson.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string(body)); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

func TestAPageThatIsTooLargeNamesALimitThatFits(t *testing.T) {
	const most, lambda = 5632 << 10, 6 << 20 // bytes of a page, and of what Lambda carries
	limits := regexp.MustCompile(`limit=\d+`)
	for name, filler := range map[string]string{"plain text": "xxxx", "escapes": `\"\\`, "line separators": "x\u2028"} { // four bytes of JSON each
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			for i := range 160 {
				size := 100 << 10
				if i >= 60 { // on the first page are the largest records
					size = 127 << 10
				}
				s.put(t, commerce.KindProduct, map[string]any{"id": numbered(i), "name": "p", "description": "-"})
				s.enlarge(numbered(i), `"description":"-"`, `"description":"`+strings.Repeat(filler, size/4)+`"`)
			}
			api := s.serve()
			for _, query := range []string{"limit=100", "limit=100&page=2", "limit=99&afterId=" + value.ID{}.String(), "limit=100&orderDirection=asc"} {
				a := ask(t, api, user(), "/api/products?"+query)
				named := namedLimit.FindSubmatch(a.body)
				if p := a.problem(t); a.status != 400 || p.Code != "page_too_large" || named == nil || p.Details[0].Field != "limit" {
					t.Fatalf("%s: got %d %.300s, want 400 page_too_large that names a limit", a.asked, a.status, a.body)
				}
				fits := ask(t, api, user(), "/api/products?"+limits.ReplaceAllString(query, "limit="+string(named[1])))
				if got := bytes.Count(fits.body, []byte(`"organizationId":`)); fits.status != 200 || got == 0 || len(fits.body) > most || carried(t, fits.body) > lambda {
					t.Errorf("%s: got %d, %d records in %d bytes, carried in %d", fits.asked, fits.status, got, len(fits.body), carried(t, fits.body))
				}
				if strings.Contains(query, "page=") {
					continue
				}
				limit, _ := strconv.Atoi(string(named[1]))
				if a := ask(t, api, user(), "/api/products?"+limits.ReplaceAllString(query, "limit="+strconv.Itoa(limit+1))); a.status != 400 {
					t.Errorf("%s: got %d, want 400: the named limit is the most that fits", a.asked, a.status)
				}
			}
		})
	}
}

func TestOnlyAWalkHasLargePages(t *testing.T) {
	s := newShelf()
	for n := range 1001 {
		s.put(t, commerce.KindCategory, map[string]any{"id": numbered(n), "name": "c"})
	}
	api := s.serve()
	for query, want := range map[string]int{
		"limit=1000&orderBy=id": 1000, "limit=1000&afterId=" + value.ID{}.String(): 1000, "limit=1001&orderBy=id": 0, "limit=0&orderBy=id": 0,
		"limit=100": 100, "limit=101": 0, "limit=101&orderBy=name": 0, "limit=101&page=2": 0,
	} {
		a := ask(t, api, user(), "/api/categories?"+query)
		if want == 0 && a.status == http.StatusBadRequest && a.problem(t).Details[0].Field == "limit" {
			continue
		}
		if got := len(a.page(t).Data); got != want {
			t.Errorf("%s: got %d entries, want %d", a.asked, got, want)
		}
	}
}

func TestALargePageOfAWalkNamesTheLimitThatFits(t *testing.T) {
	s := newShelf()
	for n := range 300 {
		s.put(t, commerce.KindProduct, map[string]any{"id": numbered(n + 1), "name": "p", "description": "-"})
		s.enlarge(numbered(n+1), `"-"`, `"`+strings.Repeat("x", 30<<10)+`"`)
	}
	api := s.serve()
	a := ask(t, api, user(), "/api/products?orderBy=id&limit=1000")
	named := namedLimit.FindSubmatch(a.body)
	if a.status != http.StatusBadRequest || a.problem(t).Code != "page_too_large" || named == nil {
		t.Fatalf("got %d %.300s, want 400 page_too_large that names a limit", a.status, a.body)
	}
	limit, _ := strconv.Atoi(string(named[1]))
	for n, want := range map[int]int{limit: http.StatusOK, limit + 1: http.StatusBadRequest} {
		if a := ask(t, api, user(), fmt.Sprintf("/api/products?orderBy=id&limit=%d", n)); a.status != want {
			t.Errorf("limit=%d: got %d, want %d", n, a.status, want)
		}
	}
}

func TestMeTellsWhatACredentialStandsFor(t *testing.T) {
	api := newHarness(t, present).serve()
	const org = `{"organizationId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00",`
	const app = `"applicationId":"00000000-0000-4000-8000-00000000bbbb",`
	read := `["` + strings.Join(account.ReadScopes(), `","`) + `"]`
	viewer := narrowed(user(), auth.WebhooksRead, auth.OrdersRead)
	viewer.SiteIDs = []value.ID{siteB, siteA}
	for i, tt := range []struct {
		p    *auth.Principal
		want string
	}{
		{viewer, org + `"applicationId":null,"keyId":null,"userId":"00000000-0000-4000-8000-00000000aaaa","scopes":["orders:read","webhooks:read"],"siteIds":["` + siteB.String() + `","` + siteA.String() + `"],"rateLimit":600}`},
		{key(siteA), org + app + `"keyId":"00000000-0000-4000-8000-00000000cccc","userId":null,"scopes":` + read + `,"siteIds":["` + siteA.String() + `"],"rateLimit":1000}`},
		{key(), org + app + `"keyId":"00000000-0000-4000-8000-00000000cccc","userId":null,"scopes":` + read + `,"siteIds":null,"rateLimit":1000}`},
		{application(), org + app + `"keyId":null,"userId":null,"scopes":` + read + `,"siteIds":null,"rateLimit":1000}`},
		{narrowed(key()), org + app + `"keyId":"00000000-0000-4000-8000-00000000cccc","userId":null,"scopes":[],"siteIds":null,"rateLimit":1000}`},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if a := ask(t, api, tt.p, "/api/me"); a.status != 200 || string(a.body) != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", a.asked, a.body, tt.want)
			}
		})
	}
}
