package records_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api/fields"
	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/ops"
)

const fieldsPath = "/developers/index/fields"

// ownFields is a service of lists with own fields.
type ownFields struct {
	*harness
	handler http.Handler
}

func newOwnFields(t *testing.T) *ownFields {
	w := &ownFields{harness: newHarness(t, present)}
	w.handler = w.start()
	return w
}

// start starts an instance of the service.
func (w *ownFields) start() http.Handler {
	cache := views.NewCache(w.Table, views.Config{Clock: w.Time})
	operations := append(records.Operations(w.Table, cache, records.Config{
		Clock: w.Time, Lists: w.lists, Fields: index.NewFieldCache(w.Table, views.Freshness, w.Time),
	}), fields.Operations(w.Table, w.lists, w.Time)...)
	return server(operations, w.Time)
}

// owner may declare fields.
func owner() *auth.Principal {
	p := user()
	p.Scopes = auth.Owner.Scopes()
	return p
}

// declare sends the fields, each "kind key TYPE", and header names and values in turn.
func (w *ownFields) declare(p *auth.Principal, declared []string, header ...string) answer {
	w.t.Helper()
	list := []map[string]string{}
	for _, text := range declared {
		part := strings.SplitN(text, " ", 3)
		list = append(list, map[string]string{"kind": part[0], "type": part[1], "key": part[2]})
	}
	body, err := json.Marshal(map[string]any{"fields": list})
	if err != nil {
		w.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(context.WithValue(w.t.Context(), principalKey{}, p), http.MethodPut, fieldsPath, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return answer{asked: "PUT " + string(body), status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
}

// build lets the time pass after which lists are built, and does the jobs of an organization.
func (w *ownFields) build(org value.ID) {
	w.t.Helper()
	w.settle()
	w.Pass(3 * time.Minute)
	for _, list := range w.lists.All() {
		for more := true; more; {
			var err error
			if more, err = w.compactor().Run(w.t.Context(), org, list.Name); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.Pass(views.Freshness)
}

func (w *ownFields) statuses(p *auth.Principal) string {
	w.t.Helper()
	var shown fields.IndexFields
	a := ask(w.t, w.handler, p, fieldsPath)
	if err := json.Unmarshal(a.body, &shown); err != nil || a.status != http.StatusOK {
		w.t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	var list []string
	for _, f := range *shown.Fields {
		list = append(list, fmt.Sprintf("%s %s %s", f.Kind, f.Key, *f.Status))
	}
	return strings.Join(list, ", ")
}

func (w *ownFields) product(n int, attributes map[string]any, sites ...value.ID) *commerce.Stored {
	return w.put(commerce.KindProduct, map[string]any{"id": numbered(n), "name": fmt.Sprint("cup ", n), "attributes": attributes}, sites...)
}

func (w *ownFields) ask(target string) answer { return ask(w.t, w.handler, user(), target) }

func TestListsAreFilteredByDeclaredFields(t *testing.T) {
	w := newOwnFields(t)
	red := w.product(1, map[string]any{"color": "Crème red", "weight": 1.5, "fragile": true, "a.b": "x"})
	blue := w.product(2, map[string]any{"color": "blue", "weight": 15, "fragile": false, "other": "red"})
	long := w.product(3, map[string]any{"color": strings.Repeat("x", 256), "weight": "1.5", "handle": "cup"})
	w.product(4, map[string]any{"color": nil})
	order := w.put(commerce.KindOrder, map[string]any{
		"id": numbered(9), "orderNumber": "1", "currency": "EUR", "metadata": map[string]any{"erpId": "A,1=2", "n": jsontext.Value("12345678901234567890")},
	})
	if got := w.declare(owner(), []string{
		"product TEXT color", "product NUMBER weight", "product BOOLEAN fragile", "product TEXT a.b", "order TEXT erpId", "order NUMBER n",
	}); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	w.build(ours)
	white := w.product(5, map[string]any{"color": "white", "weight": 0.15e1, "fragile": nil})
	w.product(2, map[string]any{"color": "black", "weight": 150e-1, "fragile": false})
	w.settle()
	for query, want := range map[string][]*commerce.Stored{
		"attributes[color]=crEme%20RED":                                    {red},
		"attributes[color]=red":                                            {},
		"attributes[color]=blue":                                           {},
		"attributes[color]=black&attributes[color]=white":                  {white, blue},
		"attributes[weight]=1.50":                                          {white, red},
		"attributes[weight]=15.0e0":                                        {blue},
		"attributes[weight]=1.5&attributes[fragile]=true":                  {red},
		"attributes[fragile]=false":                                        {blue},
		"attributes[a.b]=X":                                                {red},
		"attributes[color]=" + strings.Repeat("x", 255):                    {},
		"has=attributes.color":                                             {white, long, blue, red},
		"has=attributes.a.b":                                               {red},
		"has=attributes.weight,attributes.fragile":                         {blue, red},
		"has=attributes.color&attributes[weight]=1.5&search=cup%201":       {red},
		"has=attributes.weight&ids=" + join([]value.ID{long.ID}):           {long},
		"attributes[color]=" + "\u0301":                                    {},
		"attributes%5Bcolor%5D=white&attributes%5Bcolor%5D=Cr%C3%A8me+red": {white, red},
	} {
		t.Run(query, func(t *testing.T) {
			ask(t, w.handler, user(), "/api/products?"+query+"&orderBy=createdAt").expect(t, want...)
		})
	}
	ask(t, w.handler, user(), "/api/orders?metadata[erpId]=a,1%3D2").expect(t, order)
	ask(t, w.handler, user(), "/api/orders?metadata[erpId]=2").expect(t)
	ask(t, w.handler, user(), "/api/orders?metadata[n]=12345678901234567000").expect(t)
	ask(t, w.handler, user(), "/api/orders?metadata[n]=1234567890123456789e1").expect(t, order)
	w.product(5, map[string]any{"color": "green"}) // the index has not seen the change
	ask(t, w.start(), user(), "/api/products?attributes[color]=black&attributes[color]=white").expect(t, blue)
}

func TestAFieldIsBuiltBesideTheList(t *testing.T) {
	w := newOwnFields(t)
	red := w.product(1, map[string]any{"color": "red", "size": 3})
	w.settle()
	first := w.declare(owner(), []string{"product TEXT color"})
	if first.status != http.StatusOK {
		t.Fatalf("%d %s", first.status, first.body)
	}
	const colored, plain = "/api/products?attributes[color]=red", "/api/products?search=cup"
	building := func(t *testing.T) {
		t.Helper()
		if got := w.ask(colored); got.status != http.StatusServiceUnavailable || got.problem(t).Code != "unavailable" || got.header.Get("Retry-After") == "" {
			t.Errorf("while it is built: %d %s", got.status, got.body)
		}
		w.ask(plain).expect(t, red)
		if got := w.statuses(owner()); !strings.HasPrefix(got, "product color BUILDING") {
			t.Errorf("%s, want it BUILDING", got)
		}
	}
	building(t)
	if got := w.declare(owner(), []string{"product TEXT color", "order TEXT erpId"}); got.status != http.StatusConflict {
		t.Errorf("another one meanwhile: %d %s, want 409", got.status, got.body)
	}
	w.flush(w.lists.Records[commerce.KindProduct]) // a job before every indexer knows the field
	w.Pass(views.Freshness)
	building(t)
	w.build(ours)
	w.ask(colored).expect(t, red)
	if got := w.statuses(owner()); got != "product color READY" {
		t.Errorf("%s", got)
	}
	read := ask(t, w.handler, owner(), fieldsPath)
	if read.header.Get("ETag") == first.header.Get("ETag") {
		t.Error("the entity tag does not tell that the field is READY")
	}
	if got := w.declare(owner(), []string{"product TEXT color"}, "If-Match", `"9.0"`); got.status != http.StatusPreconditionFailed {
		t.Errorf("another version: %d %s, want 412", got.status, got.body)
	}
	if got := w.declare(owner(), []string{"product TEXT color", "product NUMBER size"}, "If-Match", first.header.Get("ETag")); got.status != http.StatusOK {
		t.Errorf("the same version: %d %s", got.status, got.body)
	}
	w.Pass(views.Freshness)
	w.ask(colored).expect(t, red)
	if got := w.statuses(owner()); got != "product color READY, product size BUILDING" {
		t.Errorf("%s", got)
	}
	if got := w.declare(owner(), []string{"product NUMBER size"}); got.status != http.StatusOK {
		t.Errorf("fewer meanwhile: %d %s", got.status, got.body)
	}
	w.build(ours)
	w.ask("/api/products?attributes[size]=3").expect(t, red)
	if got := w.ask(colored); got.status != http.StatusBadRequest {
		t.Errorf("a field that was taken away: %d %s", got.status, got.body)
	}
	// What is declared again is another field: documents made without it have no values.
	w.product(1, map[string]any{"color": "red", "size": 4})
	w.settle()
	w.declare(owner(), []string{"product NUMBER size", "product TEXT color"})
	w.Pass(views.Freshness)
	if got := w.ask(colored); got.status != http.StatusServiceUnavailable {
		t.Errorf("declared again: %d %s", got.status, got.body)
	}
	w.build(ours)
	w.ask(colored).expect(t, red)
}

// An indexer knows a new field within commerce.FieldAge.
func TestWhatAnIndexerMissesOfANewFieldIsBuilt(t *testing.T) {
	w := newOwnFields(t)
	decode := indexer.DecodeFor(w.lists, dynamo.Stream{}, index.NewFieldCache(w.Table, commerce.FieldAge, w.Time))
	w.writer = indexer.New(w.Table, decode, noPark{t}, noStart{}, w.Leaks.Logger())
	first := w.product(1, map[string]any{"color": "red"})
	w.settle()
	w.declare(owner(), []string{"product TEXT color"})
	second := w.product(2, map[string]any{"color": "red"})
	w.Pass(commerce.FieldAge - 2*time.Second)
	w.settle()
	w.Pass(2 * time.Second)
	third := w.product(3, map[string]any{"color": "red"})
	w.build(ours)
	w.ask("/api/products?attributes[color]=red&orderBy=createdAt").expect(t, third, second, first)
}

func TestAFieldIsBuiltWhenItsRequestDied(t *testing.T) {
	w := newOwnFields(t)
	red := w.product(1, map[string]any{"color": "red"})
	_, err := w.Table.ChangeFields(t.Context(), ours, func(f commerce.Fields) (commerce.Fields, error) {
		next, _ := f.Declare([]commerce.Field{{Kind: commerce.KindProduct, Key: "color", Type: commerce.FieldText}}, w.Now())
		return next, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.build(ours)
	if got := w.statuses(owner()); got != "product color BUILDING" { // which requests the job
		t.Errorf("%s", got)
	}
	w.build(ours)
	w.ask("/api/products?attributes[color]=red").expect(t, red)
}

func TestFieldsOfOthersAreUndeclared(t *testing.T) {
	w := newOwnFields(t)
	red := w.product(1, map[string]any{"color": "red"}, siteA)
	w.putFor(theirs, commerce.KindProduct, map[string]any{"id": numbered(1), "name": "theirs", "attributes": map[string]any{"color": "red", "size": "L"}})
	w.declare(owner(), []string{"product TEXT color"})
	w.declare(of(theirs, owner()), []string{"product TEXT size", "product BOOLEAN color"})
	w.build(ours)
	w.build(theirs)
	w.ask("/api/products?attributes[color]=red").expect(t, red)
	ask(t, w.handler, key(siteB), "/api/products?attributes[color]=red").expect(t)
	if got := ask(t, w.handler, of(theirs, user()), "/api/products?has=attributes.color").page(t); len(got.Data) != 1 {
		t.Errorf("theirs: %s", got.Data)
	}
	absent, foreign := w.ask("/api/products?attributes[depth]=L"), w.ask("/api/products?attributes[size]=L")
	if got, want := string(foreign.body), strings.ReplaceAll(string(absent.body), "depth", "size"); foreign.status != http.StatusBadRequest || got != want {
		t.Errorf("another organization's field: %d %s, want as an absent one: %s", foreign.status, got, want)
	}
	if got := w.statuses(owner()); got != "product color READY" {
		t.Errorf("ours: %s", got)
	}
}

func TestWrongFiltersByFieldsAreRefused(t *testing.T) {
	w := newOwnFields(t)
	w.declare(owner(), []string{"product TEXT color", "product NUMBER weight", "product BOOLEAN fragile"})
	w.build(ours)
	nine := strings.Repeat("&attributes[color]=x", 9)
	for query, want := range map[string]string{
		"attributes[color]=x" + nine:                      "",
		"attributes[color]=x&has=attributes.color" + nine: "at most 10 values",
		"attributes[size]=3":                              "/developers/index/fields",
		"has=attributes.size":                             "/developers/index/fields",
		"has=metadata.color":                              "attributes.key",
		"has=color":                                       "attributes.key",
		"has=attributes.":                                 "attributes.key",
		"attributes[weight]=red":                          "a number as JSON writes it",
		"attributes[weight]=01":                           "a number as JSON writes it",
		"attributes[weight]=1e99999999999999999999":       "in the range of a double",
		"attributes[weight]=" + strings.Repeat("1", 256):  "at most 255 characters",
		"attributes[fragile]=yes":                         "true or false",
		"attributes[color]=" + strings.Repeat("x", 256):   "at most 255 characters",
		"attributes[color]=":                              "must not be empty",
		"attributes[color]=x&attributes[color]=%20":       "must not be empty",
		"attributes[color]=%00":                           "control characters",
		"attributes=red":                                  "not a parameter",
		"attributes[]=red":                                "not a parameter",
		"attributes[color=red":                            "not a parameter",
		"metadata[color]=red":                             "not a parameter",
	} {
		t.Run(query[:min(len(query), 60)], func(t *testing.T) {
			got := ask(t, w.handler, user(), "/api/products?"+query)
			if want == "" {
				got.page(t)
			} else if got.status != http.StatusBadRequest || !strings.Contains(got.problem(t).Message, want) {
				t.Errorf("%d %s, want 400 that says %q", got.status, got.body, want)
			}
		})
	}
	if got := ask(t, w.handler, user(), "/api/categories?attributes[color]=x"); got.status != http.StatusBadRequest {
		t.Errorf("categories: %d %s", got.status, got.body)
	}
}

func TestDeclarationsOfFieldsAreChecked(t *testing.T) {
	w := newOwnFields(t)
	many := make([]string, commerce.MaxFields)
	for i := range many {
		many[i] = fmt.Sprint("product TEXT key ", i)
	}
	for _, row := range []struct {
		name     string
		declared []string
		want     string
	}{
		{"a key too many", append(many[:len(many):len(many)], "product TEXT x"), "at most 32 entries of a kind"},
		{"the most of two kinds", append(many[:len(many):len(many)], "order TEXT x"), ""},
		{"twice", []string{"order TEXT x", "order NUMBER x"}, "given once"},
		{"a kind without fields", []string{"category TEXT x"}, "product, order, customer or invoice"},
		{"no such kind", []string{"shop TEXT x"}, "must be one of"},
		{"no kind", []string{" TEXT x"}, "must be"},
		{"no such type", []string{"order DATE x"}, "must be one of TEXT, NUMBER, BOOLEAN"},
		{"no key", []string{"order TEXT "}, "1 to 64 characters"},
		{"the longest key", []string{"order TEXT " + strings.Repeat("ü", 64)}, ""},
		{"too long a key", []string{"order TEXT " + strings.Repeat("ü", 65)}, "1 to 64 characters"},
		{"a bracket", []string{"order TEXT a]"}, "bracket"},
		{"a comma", []string{"order TEXT a,b"}, "comma"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w.declare(owner(), nil)
			got := w.declare(owner(), row.declared)
			if row.want == "" && got.status != http.StatusOK || row.want != "" && (got.status != http.StatusBadRequest || !strings.Contains(got.problem(t).Message, row.want)) {
				t.Errorf("%d %s, want %q", got.status, got.body, row.want)
			}
		})
	}
	if got := w.declare(user(), nil); got.status != http.StatusForbidden {
		t.Errorf("without a role for it: %d %s", got.status, got.body)
	}
}

// What commerce verify compares has the fields of the time at which it is made.
func TestAListWithOtherFieldsThanItWasBuiltWithIsVerified(t *testing.T) {
	w := newOwnFields(t)
	for n := range 3 {
		w.product(n+1, map[string]any{"color": "red", "size": n})
	}
	for _, declared := range [][]string{
		{"product TEXT color", "product NUMBER size"},
		{"product NUMBER size", "product TEXT color"},
		{"product NUMBER size"},
		{"product NUMBER size", "product TEXT color"},
		nil,
	} {
		for _, building := range []bool{true, false} {
			if building {
				w.declare(owner(), declared)
			} else {
				w.build(ours)
			}
			w.product(3, map[string]any{"color": "blue", "size": 1.5})
			w.settle()
			differences, err := ops.Verify(t.Context(), w.Table, ours, w.lists.Records[commerce.KindProduct], w.Time())
			if err != nil || len(differences) > 0 {
				t.Errorf("%v, being built: %t: %v, %v", declared, building, differences, err)
			}
		}
	}
}
