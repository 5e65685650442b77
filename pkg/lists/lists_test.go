package lists_test

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/google/go-cmp/cmp"
)

const (
	idA = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"
	idB = "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7"
)

var schema = columnar.MustSchema("things",
	columnar.Column{Name: "owner", Type: columnar.Keyword},
	columnar.Column{Name: "status", Type: columnar.Keyword},
	columnar.Column{Name: "code", Type: columnar.Keyword},
	columnar.Column{Name: "open", Type: columnar.Bool},
	columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true, Match: true},
	columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
)

func things() *lists.List {
	return &lists.List{
		Name: "things", Schema: schema, Walk: true,
		Orders: []lists.Order{lists.By("createdAt"), lists.ByText("name")},
		Filters: []lists.Filter{
			{Name: "ids", Kind: lists.IDs, Max: 2},
			{Name: "ownerId", Kind: lists.ID, Column: "owner", Null: "root"},
			{Name: "otherId", Kind: lists.ID},
			{Name: "status", Kind: lists.Enum, Column: "status", Values: []string{"OPEN", "SHUT"}, Sets: map[string][]string{"ANY": {"OPEN", "SHUT"}}},
			{Name: "code", Kind: lists.Code, Column: "code", Check: func(s string) error {
				if len(s) != 1 {
					return errors.New("must be a letter")
				}
				return nil
			}},
			{Name: "open", Kind: lists.Bool, Column: "open"},
			{Name: "name", Kind: lists.Text, Column: "name"},
			{Name: "created", Kind: lists.Range, Column: "createdAt"},
			{Name: "updated", Kind: lists.Visible},
		},
	}
}

func parse(t testing.TB, query string) (*lists.Query, error) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return things().Parse(values)
}

func TestABadParameterIsRefusedByName(t *testing.T) {
	for _, tt := range []struct{ query, field, code, contains string }{
		{"page=", "page", "invalid_format", "empty"},
		{"status=", "status", "invalid_format", "empty"},
		{"name=%20", "name", "invalid_format", "empty"},
		{"createdFrom=", "createdFrom", "invalid_format", "empty"},
		{"page=0", "page", "out_of_range", "must be between 1 and 2147483647"},
		{"page=2147483648", "page", "out_of_range", "must be between 1 and 2147483647"},
		{"page=99999999999999999999", "page", "out_of_range", "must be between"},
		{"page=01", "page", "invalid_format", "digits only"},
		{"page=+1", "page", "invalid_format", "digits only"},
		{"page=-1", "page", "invalid_format", "digits only"},
		{"page=1.0", "page", "invalid_format", "digits only"},
		{"page=1e2", "page", "invalid_format", "digits only"},
		{"page=%201", "page", "invalid_format", "digits only"},
		{"page=%D9%A1", "page", "invalid_format", "digits only"},
		{"limit=0", "limit", "out_of_range", "must be between 1 and 100"},
		{"limit=101", "limit", "out_of_range", "must be between 1 and 100"},
		{"orderBy=Name", "orderBy", "invalid_format", "one of createdAt, name, id"},
		{"orderBy=id&page=1", "page", "not_allowed", "orderBy=id"},
		{"orderBy=id&orderDirection=desc", "orderDirection", "not_allowed", "ascending"},
		{"orderDirection=down", "orderDirection", "invalid_format", "asc or desc"},
		{"afterId=x", "afterId", "invalid_format", "UUID"},
		{"afterId=" + idA + "&page=1", "page", "not_allowed", "afterId"},
		{"afterId=" + idA + "&orderBy=name", "orderBy", "not_allowed", "must be id with afterId"},
		{"afterId=" + idA + "&orderDirection=desc", "orderDirection", "not_allowed", "ascending"},
		{"afterId=" + idA + "&orderBy=id&page=1", "page", "not_allowed", "afterId"},
		{"search=" + strings.Repeat("%C3%A9", 201), "search", "out_of_range", "200 characters"},
		{"search=" + strings.Repeat("a+", 10) + "a", "search", "out_of_range", "10 words"},
		{"ids=" + idA + ",", "ids", "invalid_format", "UUID"},
		{"ids=" + idA + "," + idA + "," + idA, "ids", "out_of_range", "at most 2"},
		{"ownerId=Root", "ownerId", "invalid_format", "or root"},
		{"otherId=root", "otherId", "invalid_format", "UUID"},
		{"otherId=" + idA + "," + idB, "otherId", "invalid_format", "UUID"},
		{"status=open", "status", "invalid_format", "of OPEN, SHUT"},
		{"status=OPEN,,SHUT", "status", "invalid_format", "of OPEN, SHUT"},
		{"status=OPEN,+SHUT", "status", "invalid_format", "of OPEN, SHUT"},
		{"code=a,bc", "code", "invalid_format", `must be a letter, or several, comma-separated; "bc" is not one`},
		{"open=1", "open", "invalid_format", "true or false"},
		{"open=TRUE", "open", "invalid_format", "true or false"},
		{"createdFrom=yesterday", "createdFrom", "invalid_format", "RFC 3339"},
		{"createdFrom=2026-11-21T06:35:41+01:00", "createdFrom", "invalid_format", "%2B"},
		{"createdTo=2026-11-21T06:35:41.0123456789Z", "createdTo", "invalid_format", "nine decimals"},
		{"createdFrom=2026-11-22&createdTo=2026-11-21", "createdFrom", "out_of_range", "not be after createdTo"},
		{"updatedFrom=2026-11-22&updatedTo=2026-11-21", "updatedFrom", "out_of_range", "not be after updatedTo"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			q, err := parse(t, tt.query)
			f, ok := fault.As(err)
			if !ok || len(f.Details) != 1 {
				t.Fatalf("%+v, %v; want one detail", q, err)
			}
			d := f.Details[0]
			if f.Kind != fault.Invalid || d.Field != tt.field || d.In != fault.InQuery || d.Code != tt.code || !strings.Contains(d.Message, tt.contains) {
				t.Errorf("got %+v\nwant %s %s …%s…", d, tt.field, tt.code, tt.contains)
			}
		})
	}
}

func TestEveryBadParameterIsNamed(t *testing.T) {
	_, err := parse(t, "page=0&limit=0&open=maybe")
	f, ok := fault.As(err)
	if !ok {
		t.Fatalf("Parse = %v", err)
	}
	var fields []string
	for _, d := range f.Details {
		fields = append(fields, d.Field)
	}
	if want := []string{"limit", "open", "page"}; !cmp.Equal(fields, want) {
		t.Errorf("details of %v, want %v", fields, want)
	}
}

func TestPagesAndOrders(t *testing.T) {
	for _, tt := range []struct {
		query       string
		page, limit int
		order       string
		desc        bool
	}{
		{"", 1, 20, "createdAt", true},
		{"page=3&limit=100", 3, 100, "createdAt", true},
		{"page=2147483647&limit=1", 2147483647, 1, "createdAt", true},
		{"orderBy=name", 1, 20, "name", false},
		{"orderBy=createdAt", 1, 20, "createdAt", true},
		{"orderDirection=ASC", 1, 20, "createdAt", false},
		{"orderBy=name&orderDirection=Desc", 1, 20, "name", true},
	} {
		t.Run(tt.query, func(t *testing.T) {
			q, err := parse(t, tt.query)
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			if q.Page != tt.page || q.Limit != tt.limit || q.Order.Name != tt.order || q.Desc != tt.desc {
				t.Errorf("page %d, limit %d, by %s desc %v; want %+v", q.Page, q.Limit, q.Order.Name, q.Desc, tt)
			}
			in := q.Index()
			if in.Offset != (tt.page-1)*tt.limit || in.Limit != tt.limit || in.OrderBy != schema.Col(tt.order) || in.Desc != tt.desc {
				t.Errorf("index query %+v", in)
			}
		})
	}
}

// view holds three things: a with everything, b with other values, c with nothing.
func view(t testing.TB) (*columnar.View, map[string]value.ID) {
	t.Helper()
	ids := map[string]value.ID{"a": value.MustID(idA), "b": value.MustID(idB), "c": value.MustID("ffffffff-9d4f-7b33-8c6e-73b2c4d5e6f7")}
	day := func(s string) int64 {
		at, err := value.ParseTime(s)
		if err != nil {
			t.Fatal(err)
		}
		return int64(at)
	}
	col := schema.Col
	v := columnar.NewView(schema)
	v.Apply([]columnar.Document{
		schema.Build(ids["a"], 0).Keyword(col("owner"), lists.Key(ids["b"])).Keyword(col("status"), "OPEN").Keyword(col("code"), "x").
			Bool(col("open"), true).Text(col("name"), "Café Nord").Time(col("createdAt"), day("2026-01-01")).Document(1, day("2026-06-01")),
		schema.Build(ids["b"], 0).Keyword(col("owner"), lists.Key(ids["a"])).Keyword(col("status"), "SHUT").Keyword(col("code"), "y").
			Bool(col("open"), false).Text(col("name"), "Bar Nord").Time(col("createdAt"), day("2026-02-01")).Document(1, day("2026-07-01")),
		schema.Build(ids["c"], 0).Document(1, day("2026-08-01")),
	})
	return v, ids
}

func TestFiltersSelect(t *testing.T) {
	v, ids := view(t)
	names := map[value.ID]string{}
	for name, id := range ids {
		names[id] = name
	}
	for query, want := range map[string]string{
		"":                                 "bac",
		"orderDirection=asc":               "abc",
		"orderBy=name":                     "bac",
		"orderBy=name&orderDirection=desc": "abc",
		"search=nord":                      "ba",
		"search=NORD+caf%C3%A9":            "a",
		"search=":                          "bac",
		"search=+":                         "bac",
		"ids=" + idB + "," + strings.ToUpper(idA): "ba",
		"ownerId=" + idB:                       "a",
		"ownerId=root":                         "c",
		"otherId=" + idB:                       "bac",
		"status=OPEN":                          "a",
		"status=SHUT,OPEN":                     "ba",
		"status=ANY":                           "ba",
		"status=OPEN,ANY":                      "ba",
		"code=y,z":                             "b",
		"open=false":                           "b",
		"name=cafe+nord":                       "a",
		"name=%20bar%20nord%20":                "b",
		"name=bar":                             "",
		"createdFrom=2026-01-01":               "ba",
		"createdFrom=2026-01-01T00:00:00.001Z": "b",
		"createdTo=2026-02-01":                 "a",
		"createdFrom=2026-02-01&createdTo=2026-02-01":  "",
		"createdTo=2026-02-01T02:00:00%2B01:00":        "ba",
		"updatedFrom=2026-07-01":                       "bc",
		"updatedFrom=2026-07-01&updatedTo=2026-08-01":  "b",
		"page=2&limit=2":                               "c",
		"page=3&limit=2":                               "",
		"afterId=00000000-0000-0000-0000-000000000000": "abc",
		"afterId=" + idA + "&limit=1":                  "b",
		"orderBy=id":                                   "abc",
		"orderBy=id&limit=2&orderDirection=asc":        "ab",
		"orderBy=id&orderDirection=asc&afterId=" + idA: "bc",
		"createdFrom=2025-12-31T23:59:59.9999Z&createdTo=2026-01-01T00:00:00.0001Z": "a",
		"createdFrom=2026-01-01T00:00:00.000001Z":                                   "b",
		"createdTo=2026-02-01T00:00:00.000000%2B0000":                               "a",
		"status=OPEN&open=false":                                                    "",
	} {
		t.Run(query, func(t *testing.T) {
			q, err := parse(t, query)
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			got := ""
			for _, hit := range v.Query(q.Index()).Hits {
				got += names[hit.ID]
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestTheOwnersFiltersAreAdded(t *testing.T) {
	v, _ := view(t)
	q, err := parse(t, "open=true")
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Query(q.Index(columnar.Any())).Total; got != 0 {
		t.Errorf("with a filter that holds nowhere: %d hits", got)
	}
}

func TestValuesAreReadByName(t *testing.T) {
	q, err := parse(t, "ownerId=root&otherId="+idA+"&open=false&status=OPEN,SHUT&createdFrom=2026-01-01")
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := q.ID("otherId"); !ok || id.String() != idA {
		t.Errorf("ID(otherId) = %v, %v", id, ok)
	}
	if id, ok := q.ID("ownerId"); ok || !q.Has("ownerId") {
		t.Errorf("ID(ownerId) = %v, %v", id, ok)
	}
	if q.Bool("open", true) || !q.Bool("absent", true) || q.Has("absent") {
		t.Errorf("Bool(open) = %v, Bool(absent) = %v", q.Bool("open", true), q.Bool("absent", true))
	}
	if got := q.Texts("status"); !cmp.Equal(got, []string{"OPEN", "SHUT"}) || q.Texts("code") != nil {
		t.Errorf("Texts = %v, %v", got, q.Texts("code"))
	}
	from, to := q.Range("created")
	if from == nil || to != nil {
		t.Errorf("Range = %v, %v", from, to)
	}
}

func TestParametersDescribeWhatParseTakes(t *testing.T) {
	params := map[string]lists.Param{}
	var names []string
	for _, p := range things().Params() {
		params[p.Name] = p
		names = append(names, p.Name)
	}
	want := []string{
		"page", "limit", "orderBy", "orderDirection", "afterId", "search", "ids", "ownerId", "otherId", "status", "code", "open",
		"name", "createdFrom", "createdTo", "updatedFrom", "updatedTo",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatal(diff)
	}
	if p := params["status"]; !p.Multi || !cmp.Equal(p.Enum, []string{"OPEN", "SHUT", "ANY"}) {
		t.Errorf("status: %+v", p)
	}
	if p := params["otherId"]; p.Format != "uuid" || p.Multi {
		t.Errorf("otherId: %+v", p)
	}
	if p := params["ids"]; p.Format != "uuid" || !p.Multi || p.Most != 2 {
		t.Errorf("ids: %+v", p)
	}
	for name, values := range map[string]map[string]bool{
		"ownerId": {idA: true, strings.ToUpper(idA): true, "root": true, idA + "0": false, "roots": false, "": false}, // root is no UUID
		"name":    {" a": true, " ": false, "": false},
	} {
		pattern := regexp.MustCompile(params[name].Pattern)
		for text, taken := range values {
			_, err := things().Parse(url.Values{name: {text}})
			if pattern.MatchString(text) != taken || (err == nil) != taken || params[name].Format != "" {
				t.Errorf("%s=%q: pattern %s, %v; want it taken: %t", name, text, pattern, err, taken)
			}
		}
	}
	if p := params["open"]; p.Type != "boolean" {
		t.Errorf("open: %+v", p)
	}
	if p := params["limit"]; p.Type != "integer" || *p.Min != 1 || *p.Max != 100 || p.Default != "20" {
		t.Errorf("limit: %+v", p)
	}
	if p := params["createdTo"]; p.Format != "date-time" {
		t.Errorf("createdTo: %+v", p)
	}
	if p := params["orderBy"]; p.Default != "createdAt" || !strings.Contains(p.Description, "asc for name and desc for createdAt") {
		t.Errorf("orderBy: %+v", p)
	}
}

func TestAListWithoutSearchOrWalkDoesNotTakeThem(t *testing.T) {
	l := &lists.List{Name: "plain", Orders: []lists.Order{lists.By("createdAt")}}
	var names []string
	for _, p := range l.Params() {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"page", "limit", "orderBy", "orderDirection"}, names); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "page=2&limit=7", "ids=" + idA, "createdFrom=2026-01-01T00:00:00%2B01:00&createdTo=2027-01-01", "search=%20a%09b", "afterId=" + idA,
		"status=OPEN,SHUT&code=a&open=true&name=%E4%B8%AD", "page=&page=1", "orderBy=name&orderDirection=DESC",
	} {
		f.Add(seed)
	}
	v, _ := view(f)
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := things().Parse(values)
		if err != nil {
			fa, ok := fault.As(err)
			if !ok || fa.Kind != fault.Invalid || len(fa.Details) == 0 {
				t.Fatalf("%q: %v is no refusal by name", query, err)
			}
			return
		}
		v.Query(q.Index())
	})
}
