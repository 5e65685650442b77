package records_test

import (
	"cmp"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
)

// seeds make the scenes of the property test.
var seeds = []uint64{1, 2}

// TestAnswersEqualAPlainComputation asks scenes for every filter, order and
// direction of every list by itself, for random combinations of them, for
// every item and for the deletions.
func TestAnswersEqualAPlainComputation(t *testing.T) {
	for _, kind := range commerce.Kinds() {
		checkDeclared(t, kind)
	}
	for _, seed := range seeds {
		t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := newScene(t, seed)
			for _, kind := range commerce.Kinds() {
				t.Run(kind.Plural(), func(t *testing.T) {
					s.checkParameters(t, kind)
					s.checkOrders(t, kind)
					s.checkWalk(t, kind)
					s.checkItems(t, kind)
					rapid.Check(t, func(t *rapid.T) {
						s.checkAt(t, rapid.SampledFrom([]string{"warm", "cold"}).Draw(t, "instance"), s.drawQuery(t, kind))
					})
				})
			}
			t.Run("deletions", func(t *testing.T) {
				asking := append(principals(), narrowed(key(), auth.OrdersRead), narrowed(key(siteC), auth.ProductsRead, auth.InvoicesRead))
				rapid.Check(t, func(t *rapid.T) {
					p := rapid.SampledFrom(asking).Draw(t, "principal")
					s.checkDeletions(t, p, s.drawDeletions(t, p))
				})
			})
		})
	}
}

// checkDeclared holds the plain rules against what the list declares: there
// is none without the other.
func checkDeclared(t *testing.T, kind commerce.Kind) {
	t.Helper()
	l := commerce.ListOf(kind)
	plain := map[string]bool{}
	for _, filters := range []map[string]plainFilter{plainShared, plainFilters[kind]} {
		for name := range filters {
			plain[name] = true
		}
	}
	for _, p := range params(kind) {
		if !plain[p.Name] {
			t.Fatalf("%s: the parameter %s has no plain counterpart", l.Name, p.Name)
		}
		delete(plain, p.Name)
	}
	if len(plain) > 0 {
		t.Fatalf("%s does not declare %v", l.Name, plain)
	}
	for i, o := range l.Orders {
		if i >= len(plainOrders[kind]) || !strings.HasPrefix(plainOrders[kind][i], o.Name+" ") {
			t.Fatalf("%s: order %d, %s, has no plain counterpart in %v", l.Name, i, o.Name, plainOrders[kind])
		}
	}
	if len(l.Orders) != len(plainOrders[kind]) {
		t.Fatalf("%s declares %v, want %v", l.Name, l.Orders, plainOrders[kind])
	}
}

// params are the parameters of a kind's list but for those of own fields, which the tests
// of fields use.
func params(kind commerce.Kind) []lists.Param {
	return slices.DeleteFunc(commerce.ListOf(kind).Params(), func(p lists.Param) bool { return p.Keyed || p.Name == "has" })
}

// checkParameters asks with every parameter alone, for each of its arguments.
func (s *scene) checkParameters(t *testing.T, kind commerce.Kind) {
	t.Helper()
	asking := principals()
	for _, p := range params(kind) {
		for i, argument := range s.arguments(kind, p) {
			q := s.query(kind, asking[i%len(asking)])
			q.values.Set(p.Name, argument)
			if q.covers() {
				s.check(t, q)
			}
		}
	}
	for _, p := range asking {
		for _, descend := range []string{"true", "false", ""} {
			for _, site := range []value.ID{siteA, siteB, {}} {
				q := s.query(kind, p)
				if !site.IsZero() {
					q.header = site.String()
				}
				if kind == commerce.KindCategory && descend != "" {
					q.values.Set("includeGlobal", descend)
				}
				if kind == commerce.KindProduct && descend != "" {
					q.values.Set("categoryId", s.few().String())
					q.values.Set("includeDescendants", descend)
				}
				if q.covers() {
					s.check(t, q)
				}
			}
		}
	}
}

// checkOrders pages through every order in every direction, past its end.
func (s *scene) checkOrders(t *testing.T, kind commerce.Kind) {
	t.Helper()
	asking := principals()
	for _, o := range commerce.ListOf(kind).Orders {
		for _, direction := range []string{"", "asc", "desc"} {
			for number := 1; number <= recordsPerKind/7+2; number++ {
				q := s.query(kind, asking[number%len(asking)])
				q.values.Set("orderBy", o.Name)
				q.values.Set("limit", "7")
				q.values.Set("page", strconv.Itoa(number))
				if direction != "" {
					q.values.Set("orderDirection", direction)
				}
				s.check(t, q)
			}
		}
	}
}

// checkWalk follows rel next of a walk by id until it ends.
func (s *scene) checkWalk(t *testing.T, kind commerce.Kind) {
	t.Helper()
	for _, p := range principals() {
		q := s.query(kind, p)
		want := q.answer(s.live[p.OrganizationID][kind]).total
		first, walked, lines := "/api/"+kind.Plural()+"?limit=5&afterId="+value.ID{}.String(), []string{}, ""
		follow(t, s.warm, p, first, "application/json", func(a answer) {
			if ids := a.ids(t); ids != "" {
				walked = append(walked, strings.Fields(ids)...)
			}
			for _, record := range a.page(t).Data {
				lines += string(record) + "\n"
			}
		})
		follow(t, s.warm, p, first, "application/x-ndjson", func(a answer) {
			lines = strings.TrimPrefix(lines, string(a.body))
		})
		if lines != "" {
			t.Errorf("the walk through %s as %v has other lines than %s", kind.Plural(), p.SiteIDs, lines)
		}
		if len(walked) != want || !slices.IsSorted(walked) || len(slices.Compact(walked)) != want {
			t.Fatalf("walk through %s as %v: got %d, want %d distinct ids in order: %v", kind.Plural(), p.SiteIDs, len(walked), want, walked)
		}
	}
}

// follow asks for a page and those that follow it, in a media type.
func follow(t *testing.T, h http.Handler, p *auth.Principal, target, accept string, each func(answer)) {
	t.Helper()
	for pages := 0; target != ""; pages++ {
		a := ask(t, h, p, target, "Accept", accept)
		if got, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")); a.status != http.StatusOK || got != accept || pages > 1000 {
			t.Fatalf("%s: page %d is %d %s, %.300s", a.asked, pages, a.status, got, a.body)
		}
		each(a)
		target = strings.TrimPrefix(linkTo(a, "next"), "https://host/prod")
	}
}

// linkTo is the URL of a relation in the Link header; "" when it is not there.
func linkTo(a answer, rel string) string {
	for link := range strings.SplitSeq(a.header.Get("Link"), ", ") {
		if target, found := strings.CutSuffix(link, `; rel="`+rel+`"`); found {
			return strings.Trim(target, "<>")
		}
	}
	return ""
}

// covers says whether the principal may ask for the query's site.
func (q *plainQuery) covers() bool {
	return q.site() == "" || q.principal.SiteIDs == nil || slices.ContainsFunc(q.principal.SiteIDs, func(id value.ID) bool { return id.String() == q.site() })
}

// arguments are values to ask a parameter with, in the query string's form.
func (s *scene) arguments(kind commerce.Kind, p lists.Param) []string {
	switch p.Name {
	case "page":
		return []string{"1", "2", "5", "2147483647"}
	case "limit":
		return []string{"1", "3", "20", "100"}
	case "orderBy":
		return p.Enum
	case "orderDirection":
		return []string{"asc", "desc", "ASC", "dEsC"}
	case "search":
		return s.searches()
	case "currency":
		return []string{"EUR", "EUR,USD", "HRK", "JPY,JPY"}
	case "siteId":
		return []string{siteA.String(), strings.ToUpper(siteB.String()), siteC.String(), siteA.String(), siteB.String(), siteA.String()}
	case "ids":
		return []string{s.ids[0].String(), strings.ToUpper(s.ids[1].String()) + "," + s.ids[2].String(), s.all(), siteA.String()}
	case "parentId":
		return append(s.references(), "root")
	}
	switch {
	case p.Type == "boolean":
		return []string{"true", "false", "true", "false", "true", "false", "true"}
	case p.Type == "number":
		return []string{"0", "-5", "0.0001", "12.5", "7.0", "1.25e1", "99999999999.9999", "-99999999999.9999", "8"}
	case p.Format == "uuid":
		return s.references()
	case p.Format == "date-time":
		return s.times(p.Name)
	case p.Enum != nil:
		return append(slices.Clone(p.Enum), strings.Join(p.Enum, ","))
	}
	return texts
}

// all are all ids of the scene.
func (s *scene) all() string { return strings.ReplaceAll(join(s.ids), " ", ",") }

// references are ids that other records may name.
func (s *scene) references() []string {
	found := []string{strings.ToUpper(s.ids[8].String()), value.ID{}.String(), "ffffffff-ffff-ffff-ffff-ffffffffffff"}
	for _, id := range s.ids[:8] {
		found = append(found, id.String())
	}
	return found
}

// times are the times of records, in several forms.
func (s *scene) times(parameter string) []string {
	found := []string{"2024-02-29", "2026-11-22", "2024-02-29T01:00:00+01:00", "2026-11-21T06:35:41.2420Z"[:23] + "Z"}
	if !strings.HasPrefix(parameter, "updated") {
		found = append(found, moments...)
		for _, at := range moments {
			found = append(found, strings.Replace(at, "Z", "000001Z", 1))
		}
		return found
	}
	var seen []value.Time
	for _, at := range s.visible {
		seen = append(seen, at)
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	for _, at := range []value.Time{seen[0], seen[len(seen)/2], seen[len(seen)-1]} {
		found = append(found, (at - 1).String(), at.String(), (at + 1).String(),
			strings.Replace(at.String(), "Z", "000001Z", 1), strings.Replace((at-1).String(), "Z", "999+0000", 1))
	}
	return found
}

// searches are whole texts, parts of them and several at once.
func (s *scene) searches() []string {
	found := append([]string{"", " ", "\u0301", "nowhere", strings.Repeat("a ", 10), strings.Repeat("é", 200)}, texts...)
	for _, text := range texts {
		runes := []rune(text)
		found = append(found, string(runes[len(runes)/3:len(runes)/3+1+len(runes)/2]))
	}
	for range 10 {
		found = append(found, s.word()+" "+string([]rune(s.word())[:1]))
	}
	return found
}

// drawQuery draws any combination of parameters.
func (s *scene) drawQuery(t *rapid.T, kind commerce.Kind) *plainQuery {
	q := s.query(kind, rapid.SampledFrom(principals()).Draw(t, "principal"))
	chance := rapid.SampledFrom([]int{12, 5, 2}).Draw(t, "chance")
	for _, p := range params(kind) {
		if rapid.IntRange(0, chance).Draw(t, p.Name+"?") == chance {
			q.values.Set(p.Name, rapid.SampledFrom(s.arguments(kind, p)).Draw(t, p.Name))
		}
	}
	walkOnly(q.values)
	for name := range q.values {
		span, isFrom := strings.CutSuffix(name, "From")
		if from, to := q.values.Get(name), q.values.Get(span+"To"); isFrom && to != "" && plainTime(from).After(plainTime(to)) {
			q.values.Set(name, to)
			q.values.Set(span+"To", from)
		}
	}
	for _, amount := range []string{"Total", "Available"} {
		low, high := q.values.Get("min"+amount), q.values.Get("max"+amount)
		if low != "" && high != "" && plainNumber(low).Cmp(plainNumber(high)) > 0 {
			q.values.Set("min"+amount, high)
			q.values.Set("max"+amount, low)
		}
	}
	if sites := q.principal.SiteIDs; q.values.Has("siteId") && sites != nil {
		q.values.Set("siteId", rapid.SampledFrom(sites).Draw(t, "its site").String())
	}
	if q.values.Has("siteId") && rapid.Bool().Draw(t, "by header") {
		q.header = q.values.Get("siteId")
		if rapid.Bool().Draw(t, "only") {
			q.values.Del("siteId")
		}
	}
	return q
}

// checkItems asks for every id, and as every principal for some.
func (s *scene) checkItems(t *testing.T, kind commerce.Kind) {
	t.Helper()
	asking := principals()
	for i, id := range s.ids {
		for j, p := range asking {
			if (i+j)%4 > 0 {
				continue
			}
			q := s.query(kind, p)
			if q.header = []string{"", siteA.String(), siteB.String()}[i%3]; !q.covers() {
				q.header = ""
			}
			s.checkItem(t, q, id)
		}
	}
}

func (s *scene) checkItem(t *testing.T, q *plainQuery, id value.ID) {
	t.Helper()
	var header []string
	if q.header != "" {
		header = []string{"X-Site-Id", q.header}
	}
	a := ask(t, s.cold, q.principal, "/api/"+q.kind.Plural()+"/"+id.String(), header...)
	of := s.live[q.principal.OrganizationID][q.kind]
	i := slices.IndexFunc(of, func(r *plainRecord) bool { return r.id == id.String() })
	if i < 0 || !q.showsItem(of[i]) {
		if a.status != http.StatusNotFound || a.problem(t).Code != "not_found" {
			t.Fatalf("%s: got %d %s, want 404", a.asked, a.status, a.body)
		}
		return
	}
	if a.status != http.StatusOK {
		t.Fatalf("%s: got %d %s, want 200", a.asked, a.status, a.body)
	}
	if diff := s.differ(q, []jsontext.Value{a.body}, of[i:i+1]); diff != "" {
		t.Fatalf("%s: %s", a.asked, diff)
	}
}

// drawDeletions draws any combination of the list's parameters.
func (s *scene) drawDeletions(t *rapid.T, p *auth.Principal) url.Values {
	values := url.Values{}
	for _, declared := range commerce.DeletionList().Params() {
		if rapid.IntRange(0, 2).Draw(t, declared.Name+"?") > 0 {
			continue
		}
		var of []string
		switch declared.Name {
		case "page":
			of = []string{"1", "2", "3", "2147483647"}
		case "limit":
			of = []string{"1", "4", "20", "100"}
		case "orderBy":
			of = []string{"deletedAt", "id"}
		case "orderDirection":
			of = []string{"asc", "desc"}
		case "kind":
			for _, kind := range commerce.Kinds() {
				if p.Scopes.Has(auth.Scope(kind.Plural() + ":read")) {
					of = append(of, string(kind), string(kind)+","+string(kind))
				}
			}
			of = append(of, strings.Join(slices.DeleteFunc(slices.Clone(of), func(s string) bool { return strings.Contains(s, ",") }), ","))
		case "deletedFrom", "deletedTo":
			of = s.deletedTimes()
		case "afterId":
			of = append(s.references(), strings.ToUpper(s.ids[20].String()))
		default:
			t.Fatalf("the parameter %s of the deletions has no plain counterpart", declared.Name)
		}
		values.Set(declared.Name, rapid.SampledFrom(of).Draw(t, declared.Name))
	}
	if from, to := values.Get("deletedFrom"), values.Get("deletedTo"); from != "" && to != "" && from > to {
		values.Set("deletedFrom", to)
		values.Set("deletedTo", from)
	}
	walkOnly(values)
	return values
}

// walkOnly takes away what a walk by id does not take.
func walkOnly(values url.Values) {
	if values.Has("afterId") && values.Get("orderBy") != "id" {
		values.Del("orderBy")
	}
	if values.Has("afterId") || values.Get("orderBy") == "id" {
		values.Del("page")
		values.Del("orderDirection")
	}
}

// deletedTimes are the times at which deletions became visible, and those
// right after them.
func (s *scene) deletedTimes() []string {
	var at []string
	for _, d := range append(s.plainDeletions(ours), s.plainDeletions(theirs)...) {
		at = append(at, value.TimeOf(d.visible).String(), (value.TimeOf(d.visible) + 1).String())
	}
	slices.Sort(at)
	return at
}

// holdsDeletion says whether a deletion is in the answer, on whichever page.
func holdsDeletion(p *auth.Principal, values url.Values, d plainDeletion) bool {
	if kinds := values.Get("kind"); kinds != "" && !slices.Contains(strings.Split(kinds, ","), d.kind) {
		return false
	}
	if from := values.Get("deletedFrom"); from != "" && d.visible.Before(plainTime(from)) {
		return false
	}
	if to := values.Get("deletedTo"); to != "" && !d.visible.Before(plainTime(to)) {
		return false
	}
	return p.Scopes.Has(auth.Scope(commerce.Kind(d.kind).Plural() + ":read"))
}

func (s *scene) checkDeletions(t tester, p *auth.Principal, values url.Values) {
	t.Helper()
	found := s.plainDeletions(p.OrganizationID)
	found = slices.DeleteFunc(found, func(d plainDeletion) bool { return !holdsDeletion(p, values, d) })
	total := len(found)
	rank := func(d plainDeletion) int { return slices.Index(commerce.Kinds(), commerce.Kind(d.kind)) }
	after := strings.ToLower(values.Get("afterId"))
	if after == "" && values.Get("orderBy") == "id" {
		after = value.ID{}.String()
	}
	slices.SortFunc(found, func(a, b plainDeletion) int {
		byID := cmp.Or(strings.Compare(a.id, b.id), rank(a)-rank(b))
		switch c := cmp.Or(a.deletedAt.Compare(b.deletedAt), byID); {
		case after != "":
			return byID
		case values.Get("orderDirection") == "asc":
			return c
		default:
			return -c
		}
	})
	found = slices.DeleteFunc(found, func(d plainDeletion) bool { return after != "" && d.id <= after })
	limit, _ := strconv.Atoi(cmp.Or(values.Get("limit"), "20"))
	number, _ := strconv.Atoi(cmp.Or(values.Get("page"), "1"))
	first := min((number-1)*limit, len(found))
	end := min(first+limit, len(found))
	for after != "" && end > 0 && end < len(found) && found[end].id == found[end-1].id {
		end++ // a walk does not part what shares an id
	}
	found = found[first:end]
	for name, instance := range s.instances() {
		a := ask(t, instance, p, "/api/deletions?"+values.Encode())
		got := a.page(t)
		var want []string
		for _, d := range found {
			want = append(want, `{"id":"`+d.id+`","kind":"`+d.kind+`","deletedAt":"`+value.TimeOf(d.deletedAt).String()+`"}`)
		}
		gotText, _ := json.Marshal(got.Data)
		if string(gotText) != "["+strings.Join(want, ",")+"]" || got.Meta.Total != total || got.Meta.TotalPages != (total+limit-1)/limit {
			t.Fatalf("%s (%s):\n got %s %+v\nwant %v, total %d", a.asked, name, gotText, got.Meta, want, total)
		}
	}
}
