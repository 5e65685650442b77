package records_test

import (
	"bytes"
	"compress/gzip"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
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

func TestAListIsCutIntoPages(t *testing.T) {
	w := newHarness(t, present)
	all := w.fill(23)
	w.settle()
	api := w.serve()
	for _, tt := range []struct {
		query string
		want  []*commerce.Stored
		meta  string
	}{
		{"", reversed(all[3:]), `"page":1,"limit":20,"total":23,"totalPages":2`},
		{"?page=2", reversed(all[:3]), `"page":2,"limit":20,"total":23,"totalPages":2`},
		{"?page=3", nil, `"page":3,"limit":20,"total":23,"totalPages":2`},
		{"?page=2147483647&limit=100", nil, `"page":2147483647,"limit":100,"total":23,"totalPages":1`},
		{"?limit=1&page=23", all[:1], `"page":23,"limit":1,"total":23,"totalPages":23`},
		{"?limit=23", reversed(all), `"page":1,"limit":23,"total":23,"totalPages":1`},
		{"?limit=22&page=2", all[:1], `"page":2,"limit":22,"total":23,"totalPages":2`},
		{"?search=nowhere", nil, `"page":1,"limit":20,"total":0,"totalPages":0`},
		{"?search=nowhere&page=7", nil, `"page":7,"limit":20,"total":0,"totalPages":0`},
		{"?afterId=" + all[20].ID.String(), all[21:], `"page":1,"limit":20,"total":23,"totalPages":2`},
		{"?afterId=" + all[22].ID.String(), nil, `"page":1,"limit":20,"total":23,"totalPages":2`},
		{"?afterId=00000000-0000-0000-0000-000000000000&limit=2", all[:2], `"page":1,"limit":2,"total":23,"totalPages":12`},
		{"?afterId=ffffffff-ffff-ffff-ffff-ffffffffffff", nil, `"page":1,"limit":20,"total":23,"totalPages":2`},
	} {
		t.Run(tt.query, func(t *testing.T) {
			a := ask(t, api, user(), "/api/products"+tt.query)
			a.expect(t, tt.want...)
			if !strings.HasSuffix(string(a.body), `],"meta":{`+tt.meta+`}}`) {
				t.Errorf("%s: got %s, want the meta %s", a.asked, a.body[max(0, len(a.body)-100):], tt.meta)
			}
		})
	}
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

func TestTheOrderIsThatOfItsFieldUnlessADirectionIsAskedFor(t *testing.T) {
	w := newHarness(t, present)
	product := func(n int, fields map[string]any) *commerce.Stored {
		fields["id"] = numbered(n)
		return w.put(commerce.KindProduct, fields)
	}
	a := product(1, map[string]any{"name": "B", "sellingPrice": 2, "createdAt": "2026-01-03"})
	b := product(2, map[string]any{"name": "á", "sku": "x", "createdAt": "2026-01-02"})
	c := product(3, map[string]any{"name": "A", "sellingPrice": 10, "createdAt": "2026-01-02"})
	d := product(4, map[string]any{"name": "c", "sellingPrice": 0, "sku": "X", "createdAt": "2026-01-01"})
	w.settle()
	api := w.serve()
	for query, want := range map[string][]*commerce.Stored{
		"":                                        {a, c, b, d},
		"orderDirection=asc":                      {d, b, c, a},
		"orderDirection=DESC":                     {a, c, b, d},
		"orderBy=createdAt":                       {a, c, b, d},
		"orderBy=createdAt&orderDirection=":       nil,
		"orderBy=name":                            {b, c, a, d},
		"orderBy=name&orderDirection=desc":        {d, a, c, b},
		"orderBy=sku":                             {b, d, a, c},
		"orderBy=sku&orderDirection=desc":         {d, b, c, a},
		"orderBy=sellingPrice":                    {c, a, d, b},
		"orderBy=sellingPrice&orderDirection=asC": {d, a, c, b},
		"orderBy=purchasePrice":                   {d, c, b, a},
	} {
		t.Run(query, func(t *testing.T) {
			got := ask(t, api, user(), "/api/products?"+query)
			if want == nil {
				if got.status != http.StatusBadRequest {
					t.Errorf("%s: got %d, want 400", got.asked, got.status)
				}
				return
			}
			got.expect(t, want...)
		})
	}
}

func TestLinksLeadToTheOtherPages(t *testing.T) {
	w := newHarness(t, present)
	all := w.fill(5)
	w.settle()
	api := w.serve()
	link := func(query, rel string) string {
		return `<https://host/prod/api/products?` + query + `>; rel="` + rel + `"`
	}
	for query, want := range map[string][]string{
		"":                {link("page=1", "first"), link("page=1", "last")},
		"limit=2":         {link("limit=2&page=1", "first"), link("limit=2&page=2", "next"), link("limit=2&page=3", "last")},
		"limit=2&page=2":  {link("limit=2&page=1", "first"), link("limit=2&page=1", "prev"), link("limit=2&page=3", "next"), link("limit=2&page=3", "last")},
		"page=3&limit=2":  {link("limit=2&page=1", "first"), link("limit=2&page=2", "prev"), link("limit=2&page=3", "last")},
		"limit=2&page=9":  {link("limit=2&page=1", "first"), link("limit=2&page=3", "prev"), link("limit=2&page=3", "last")},
		"search=nowhere":  {link("search=nowhere&page=1", "first"), link("search=nowhere&page=1", "last")},
		"search=p0%26%3D": {link("search=p0%26%3D&page=1", "first"), link("search=p0%26%3D&page=1", "last")},
		"limit=2&orderBy=name": {
			link("limit=2&orderBy=name&page=1", "first"), link("limit=2&orderBy=name&page=2", "next"), link("limit=2&orderBy=name&page=3", "last"),
		},
		"limit=2&afterId=" + all[0].ID.String(): {
			link("limit=2&afterId=00000000-0000-0000-0000-000000000000", "first"), link("limit=2&afterId="+all[2].ID.String(), "next"),
		},
		"limit=3&afterId=" + all[2].ID.String(): {link("limit=3&afterId=00000000-0000-0000-0000-000000000000", "first")},
	} {
		t.Run(query, func(t *testing.T) {
			a := ask(t, api, user(), "/api/products?"+query)
			if got := a.header.Get("Link"); got != strings.Join(want, ", ") {
				t.Errorf("%s:\n got %s\nwant %s", a.asked, got, strings.Join(want, ", "))
			}
		})
	}
}

func TestReadsAreConditionalAndHaveAHead(t *testing.T) {
	w := newHarness(t, present)
	stored := w.fill(30)
	w.settle()
	handler := w.serve()
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), principalKey{}, user())))
	}))
	defer web.Close()
	exchange := func(method, path string, header ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "identity")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	for _, path := range []string{"/api/products", "/api/products/" + stored[0].ID.String(), "/api/deletions", "/api/me"} {
		get, body := exchange("GET", path)
		tag := get.Header.Get("ETag")
		if get.StatusCode != 200 || tag != api.ETagOf([]byte(body)) || get.Header.Get("Content-Type") != "application/json" ||
			get.Header.Get("Cache-Control") != "private, no-cache" || get.Header.Get("Vary") != "Authorization, X-API-Key, X-Site-Id, Accept, Accept-Encoding" {
			t.Errorf("GET %s: got %d with %v", path, get.StatusCode, get.Header)
		}
		head, none := exchange("HEAD", path)
		if none != "" || head.StatusCode != 200 {
			t.Errorf("HEAD %s: got %d with %q, want 200 without a body", path, head.StatusCode, none)
		}
		for _, name := range []string{"ETag", "Link", "Content-Type", "Vary", "Cache-Control", "X-RateLimit-Limit"} {
			if head.Header.Get(name) != get.Header.Get(name) {
				t.Errorf("HEAD %s: %s is %q, of GET %q", path, name, head.Header.Get(name), get.Header.Get(name))
			}
		}
		if again, body := exchange("GET", path, "If-None-Match", tag); again.StatusCode != 304 || body != "" || again.Header.Get("ETag") != tag {
			t.Errorf("GET %s with its tag: got %d, %q and %v, want 304", path, again.StatusCode, body, again.Header)
		}
		if other, _ := exchange("GET", path, "If-None-Match", `"other"`); other.StatusCode != 200 {
			t.Errorf("GET %s with another tag: got %d, want 200", path, other.StatusCode)
		}
	}
	_, body := exchange("GET", "/api/products")
	zipped, raw := exchange("GET", "/api/products", "Accept", "*/*", "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(r); err != nil || string(plain) != body || zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a compressed page: %v, %v; want the same page", zipped.Header, err)
	}
}

func TestTheTagOfAListChangesWithItsPageOnly(t *testing.T) {
	w := newHarness(t, present)
	w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "a"})
	w.settle()
	api := w.serve()
	tag := func() string { return ask(t, api, user(), "/api/products?limit=1").header.Get("ETag") }
	before := tag()
	w.put(commerce.KindCategory, map[string]any{"id": numbered(1), "name": "a"})
	w.settle()
	if after := tag(); after != before {
		t.Errorf("after another list changed: got %s, want %s", after, before)
	}
	w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "b"})
	w.settle()
	if after := tag(); after == before {
		t.Errorf("after the product changed: got %s again", after)
	}
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

func TestABusyTableAnswersUnavailable(t *testing.T) {
	s := newShelf()
	s.put(t, commerce.KindProduct, map[string]any{"id": numbered(1), "name": "p"})
	for _, tt := range []struct {
		fail   error
		status int
		code   string
		retry  string
	}{
		{fault.Busy(errors.New("throttled: secret")), 503, "unavailable", "1"},
		{fmt.Errorf("batch get: %w", context.DeadlineExceeded), 503, "unavailable", "1"},
		{errors.New("a secret of the inside"), 500, "internal", ""},
	} {
		s.fail = tt.fail
		for _, path := range []string{"/api/products", "/api/products/" + numbered(1).String()} {
			a := ask(t, s.serve(), user(), path)
			if a.status != tt.status || a.problem(t).Code != tt.code || a.header.Get("Retry-After") != tt.retry || strings.Contains(string(a.body), "secret") {
				t.Errorf("%s when reads fail by %v: got %d %s, Retry-After %q", a.asked, tt.fail, a.status, a.body, a.header.Get("Retry-After"))
			}
		}
	}
}

func TestMeTellsWhatACredentialStandsFor(t *testing.T) {
	api := newHarness(t, present).serve()
	const org = `{"organizationId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00",`
	const app, read = `"applicationId":"00000000-0000-4000-8000-00000000bbbb",`, `["categories:read","customers:read","invoices:read","orders:read","products:read"]`
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

func TestAShelfLifeIsADecimalAsOtherQuantities(t *testing.T) {
	w := newHarness(t, present)
	for i, tt := range []struct{ given, want string }{{"30", "30"}, {"1.5", "1.5"}, {"0.0001", "0.0001"}, {"3e1", "30"}, {"null", "null"}} {
		t.Run(tt.given, func(t *testing.T) {
			s := w.put(commerce.KindProduct, map[string]any{"id": numbered(i + 1), "name": "p", "shelfLifeDays": stdjson.RawMessage(tt.given)})
			a := ask(t, w.serve(), user(), "/api/products/"+s.ID.String())
			if want := `"shelfLifeDays":` + tt.want + `,`; !strings.Contains(string(a.body), want) {
				t.Errorf("%s: got %s, want %s", a.asked, a.body, want)
			}
		})
	}
}
