package api_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

const (
	idA = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"
	idB = "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7"
)

func things() *lists.List {
	return &lists.List{
		Name: "things", Walk: true,
		Schema: columnar.MustSchema("things", columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true}),
		Orders: []lists.Order{lists.By("createdAt"), lists.ByText("name")},
		Filters: []lists.Filter{
			{Name: "status", Kind: lists.Enum, Values: []string{"OPEN", "SHUT"}},
			{Name: "ids", Kind: lists.IDs, Max: 2},
			{Name: "open", Kind: lists.Bool},
			{Name: "created", Kind: lists.Range},
			{Name: "updated", Kind: lists.Visible},
		},
	}
}

// serveList serves a list at /things, which has total entries and whose page
// ends with the entry last.
func serveList(list *lists.List, total int, last *value.ID) http.Handler {
	return api.NewServer([]api.Operation{{
		ID: "listThings", Method: "GET", Path: "/things", Access: api.Public, Status: 200, List: list,
		Handle: func(r *api.Request) (*api.Response, error) {
			return api.AnswerPage(r, []widget{}, total, last)
		},
	}}, api.Config{
		Caller: func(*http.Request) api.Caller { return api.Caller{BaseURL: "https://x.test"} },
		Clock:  clock, Logger: silent,
	})
}

func getList(t testing.TB, server http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/things", nil)
	r.URL.RawQuery = query
	server.ServeHTTP(answer, r)
	return answer
}

// view is an index that has entries, in their order, and follows what happens.
type view struct{ ids []byte }

func (v *view) query(limit int) (lists.Answer, error) {
	var answer lists.Answer
	for _, id := range v.ids[:min(limit, len(v.ids))] {
		answer.Hits = append(answer.Hits, columnar.Hit{ID: [16]byte{id}})
	}
	return answer, nil
}

// showing leaves out the entries that are gone, of which the view hears then.
func (v *view) showing(gone string) func([]columnar.Hit) ([]columnar.Hit, []byte, error) {
	return func(hits []columnar.Hit) (shown []columnar.Hit, entries []byte, _ error) {
		for _, hit := range hits {
			if id := hit.ID[0]; strings.IndexByte(gone, id) < 0 {
				shown, entries = append(shown, hit), append(entries, id)
			}
		}
		v.ids = bytes.ReplaceAll(v.ids, []byte("b"), nil)
		return shown, entries, nil
	}
}

// The view may learn between two queries of one page of what that left out: to
// count on from the first would skip what moved up.
func TestAPageIsFilledFromAViewThatFollows(t *testing.T) {
	request := &api.Request{List: &lists.Query{Limit: 3}}
	for _, tt := range []struct{ has, gone, want string }{
		{"abcdefg", "b", "acd"},
		{"abcdefg", "bc", "ade"},
		{"abcdefg", "abcde", "fg"},
		{"acd", "c", "ad"},
		{"abc", "abc", ""},
		{"", "", ""},
	} {
		v := &view{[]byte(tt.has)}
		page, answer, err := api.FullPage(request, v.query, v.showing(tt.gone))
		if err != nil || string(page) != tt.want || len(answer.Hits) != len(page) {
			t.Errorf("of %q without %q: got %q with %d hits, %v; want %q", tt.has, tt.gone, page, len(answer.Hits), err, tt.want)
		}
	}
	stale := &view{bytes.Repeat([]byte("x"), 20_000)}
	page, _, err := api.FullPage(request, stale.query, stale.showing("x"))
	if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable {
		t.Errorf("of an index with 20,000 entries that are gone: got %q, %v; want 503, which a client tries again", page, err)
	}
}

func TestARepeatedParameterOfSeveralValuesIsAsGoodAsCommas(t *testing.T) {
	server := serveList(things(), 50, nil)
	for query, want := range map[string]string{
		"status=OPEN&status=SHUT":                "status=OPEN%2CSHUT&page=1",
		"status=OPEN,SHUT&status=OPEN":           "status=OPEN%2CSHUT%2COPEN&page=1",
		"status=OPEN":                            "status=OPEN&page=1",
		"status=OPEN&status=":                    "",
		"status=&status=OPEN":                    "",
		"status=OPEN&status=CLOSED":              "",
		"ids=" + idA + "&ids=" + idB:             "ids=" + idA + "%2C" + idB + "&page=1",
		"ids=" + idA + "&ids=" + idB + "," + idA: "", // more than two
	} {
		t.Run(query, func(t *testing.T) {
			answer := getList(t, server, query)
			if link := answer.Header().Get("Link"); (answer.Code == http.StatusOK) != (want != "") || !strings.HasPrefix(link, "<https://x.test/things?"+want) && want != "" {
				t.Errorf("got %d %s %s, want %s", answer.Code, link, answer.Body, want)
			}
		})
	}
}

func TestAListTakesItsParametersOnce(t *testing.T) {
	server := serveList(things(), 0, nil)
	for _, tt := range []struct{ query, field, code, contains string }{
		{"colour=red", "colour", "unknown", "not a parameter"},
		{"Page=1", "Page", "unknown", "not a parameter"},
		{"page=1&page=2", "page", "duplicate", "once"},
		{"open=true&open=true", "open", "duplicate", "once"},
		{"search=a&search=b", "search", "duplicate", "once"},
		{"created=2026-11-22", "created", "unknown", "not a parameter"},
		{"page=0&colour=red", "colour", "unknown", "not a parameter"}, // values are read when all names are known
		{"page=0", "page", "out_of_range", "between"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			answer := getList(t, server, tt.query)
			var p api.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || answer.Code != 400 || len(p.Details) != 1 {
				t.Fatalf("got %d %s, %v; want 400 with one detail", answer.Code, answer.Body, err)
			}
			if d := p.Details[0]; d.Field != tt.field || d.In != "query" || d.Code != tt.code || !strings.Contains(d.Message, tt.contains) {
				t.Errorf("got %+v\nwant %s %s …%s…", d, tt.field, tt.code, tt.contains)
			}
		})
	}
}

func TestLinksLeadThroughThePages(t *testing.T) {
	last := value.MustID(idB)
	for _, tt := range []struct {
		name, query string
		total       int
		last        *value.ID
		want        string
	}{
		{"an empty list", "", 0, nil, `first=page=1 last=page=1`},
		{"one page", "", 20, nil, `first=page=1 last=page=1`},
		{"two pages", "", 21, nil, `first=page=1 next=page=2 last=page=2`},
		{"a page in the middle", "page=2&limit=10", 35, nil, `first=limit=10&page=1 prev=limit=10&page=1 next=limit=10&page=3 last=limit=10&page=4`},
		{"the last page", "page=4&limit=10", 35, nil, `first=limit=10&page=1 prev=limit=10&page=3 last=limit=10&page=4`},
		{"a page past the end", "page=9&limit=10", 35, nil, `first=limit=10&page=1 prev=limit=10&page=4 last=limit=10&page=4`},
		{
			"filters stay", "search=a+%26b&status=OPEN,SHUT", 21, nil,
			`first=search=a+%26b&status=OPEN%2CSHUT&page=1 next=search=a+%26b&status=OPEN%2CSHUT&page=2 last=search=a+%26b&status=OPEN%2CSHUT&page=2`,
		},
		{"a walk", "limit=5&afterId=" + idA, 99, &last, "first=limit=5&afterId=00000000-0000-0000-0000-000000000000 next=limit=5&afterId=" + idB},
		{"the end of a walk", "limit=5&afterId=" + idA, 99, nil, "first=limit=5&afterId=00000000-0000-0000-0000-000000000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := getList(t, serveList(things(), tt.total, tt.last), tt.query)
			if got := links(answer.Header().Get("Link")); got != tt.want {
				t.Errorf("%s of %d:\n got %s\nwant %s", tt.query, tt.total, got, tt.want)
			}
		})
	}
}

// links shortens a Link header to rel=query pairs.
func links(header string) string {
	var out []string
	for _, part := range strings.Split(header, ", ") {
		target, rel, _ := strings.Cut(strings.TrimPrefix(part, "<https://x.test/things?"), ">; ")
		out = append(out, strings.Trim(strings.TrimPrefix(rel, "rel="), `"`)+"="+target)
	}
	return strings.Join(out, " ")
}

func FuzzLinksAreTaken(f *testing.F) {
	for _, seed := range []string{
		"", "page=2&limit=7", "createdFrom=2026-01-01T00:00:00%2B01:00&createdTo=2027-01-01", "search=%20a%09b", "afterId=" + idA,
		"status=OPEN&open=true&search=%E4%B8%AD", "page=&page=1", "orderBy=name&orderDirection=DESC",
	} {
		f.Add(seed)
	}
	server := serveList(things(), 1_000_000_000, &value.ID{})
	f.Fuzz(func(t *testing.T, query string) {
		answer := getList(t, server, query)
		if answer.Code != 200 {
			return
		}
		for _, part := range strings.Split(answer.Header().Get("Link"), ", ") {
			target, _, _ := strings.Cut(strings.TrimPrefix(part, "<https://x.test/things?"), ">; ")
			if linked := getList(t, server, target); linked.Code != 200 {
				t.Fatalf("%q: the link %q is refused: %s", query, part, linked.Body)
			}
		}
	})
}
