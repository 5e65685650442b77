package index_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// plainRow is what a list shows of one record at one revision, by the names of
// the list's columns. Values are in lower case already.
type plainRow struct {
	id       value.ID
	sub      uint8
	revision int64
	keywords map[string][]string
	numbers  map[string]int64 // times and booleans too
	texts    map[string]string
}

func (r *plainRow) String() string {
	if r == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s/%d@%d %v %v %q", r.id, r.sub, r.revision, r.keywords, r.numbers, r.texts)
}

// plainList says of a list which columns a query may ask about, and how.
type plainList struct {
	*index.List
	keywords map[string][]string // with values to ask for
	numbers  []string
	times    []string
	flags    []string
	nulls    []string
	whole    map[string][]string // texts that are compared whole
	search   []string
	orders   []string
}

// Values that records of the model share, so that queries meet several.
var (
	modelSites  = []value.ID{value.MustID("aaaaaaaa-0000-4000-8000-000000000001"), value.MustID("bbbbbbbb-0000-4000-8000-000000000002")}
	modelWords  = []string{"red shirt", "blue shirt", "red hat", "long red coat", "hat", "c"}
	modelStates = []string{"PENDING", "CONFIRMED", "COMPLETED"}
)

func plainOrders(l *index.List) *plainList {
	return &plainList{
		List: l, keywords: map[string][]string{"status": modelStates, "siteId": lists.Keys(modelSites)},
		numbers: []string{"total"}, times: []string{"createdAt", "placedAt"}, nulls: []string{"siteId", "externalRef"},
		whole: map[string][]string{"orderNumber": modelWords, "externalRef": modelWords}, search: []string{"orderNumber", "customerName"},
		orders: []string{"", "total", "placedAt", "createdAt", "updatedAt", "orderNumber"},
	}
}

func plainProducts(l *index.List) *plainList {
	return &plainList{
		List: l, keywords: map[string][]string{"siteIds": lists.Keys(modelSites)}, flags: []string{"isActive"},
		numbers: []string{"sellingPrice"}, times: []string{"createdAt"}, nulls: []string{"siteIds", "sellingPrice", "sku"},
		whole: map[string][]string{"sku": modelWords}, search: []string{"name", "sku"},
		orders: []string{"", "name", "sku", "sellingPrice", "createdAt", "updatedAt"},
	}
}

func plainDeletions(l *index.List) *plainList {
	return &plainList{
		List: l, keywords: map[string][]string{"kind": {string(commerce.KindOrder), string(commerce.KindProduct)}},
		times: []string{"deletedAt"}, orders: []string{"", "deletedAt"},
	}
}

// plainQuery is a query beside what it means.
type plainQuery struct {
	text  string
	query columnar.Query
	order string
	holds func(*plainRow) bool
}

// all is the query without its page.
func (q plainQuery) all() plainQuery {
	q.query.Offset, q.query.Limit, q.query.AfterID = 0, 10_000, nil
	return q
}

func everything() plainQuery {
	return plainQuery{text: "everything", query: columnar.Query{Limit: 10_000}, holds: func(*plainRow) bool { return true }}
}

// drawQuery draws a query of the list. times are moments around which the
// rows lie.
func (l *plainList) drawQuery(t *rapid.T, times []int64) plainQuery {
	q := plainQuery{}
	var filters []columnar.Filter
	var conditions []func(*plainRow) bool
	var texts []string
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(t, "filters") {
		text, filter, holds := l.drawFilter(t, times)
		texts, filters, conditions = append(texts, text), append(filters, filter), append(conditions, holds)
	}
	if len(l.search) > 0 && rapid.IntRange(0, 2).Draw(t, "searched") == 0 {
		tokens := rapid.SliceOfN(rapid.SampledFrom([]string{"red", "shirt", "hat", "c", "ong", "nowhere"}), 1, 2).Draw(t, "tokens")
		q.query.Search, texts = tokens, append(texts, fmt.Sprintf("search %q", tokens))
		conditions = append(conditions, func(r *plainRow) bool { return r.contains(l.search, tokens) })
	}
	q.query.Filter = columnar.All(filters...)
	q.holds = func(r *plainRow) bool {
		return !slices.ContainsFunc(conditions, func(holds func(*plainRow) bool) bool { return !holds(r) })
	}
	q.query.Limit = rapid.SampledFrom([]int{1, 2, 5, 1000}).Draw(t, "limit")
	if rapid.IntRange(0, 4).Draw(t, "walked") == 0 {
		after := [16]byte(modelID(rapid.IntRange(-1, modelIDs).Draw(t, "after")))
		q.query.AfterID, texts = &after, append(texts, fmt.Sprintf("after %s", value.ID(after)))
	} else {
		q.order, q.query.Desc = rapid.SampledFrom(l.orders).Draw(t, "order"), rapid.Bool().Draw(t, "desc")
		q.query.Offset = rapid.SampledFrom([]int{0, 0, 1, 4, 30}).Draw(t, "offset")
		texts = append(texts, fmt.Sprintf("by %q, descending %v, %d from %d", q.order, q.query.Desc, q.query.Limit, q.query.Offset))
	}
	if q.order != "" {
		q.query.OrderBy = l.Schema.Col(q.order)
	}
	q.text = l.Name + ": " + strings.Join(texts, ", ")
	return q
}

func (l *plainList) drawFilter(t *rapid.T, times []int64) (text string, filter columnar.Filter, holds func(*plainRow) bool) {
	kinds := []string{"keyword", "time", "ids"}
	for kind, names := range map[string]int{"number": len(l.numbers), "flag": len(l.flags), "null": len(l.nulls), "whole": len(l.whole)} {
		if names > 0 {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	switch kind := rapid.SampledFrom(kinds).Draw(t, "filter"); kind {
	case "keyword", "whole":
		columns := l.keywords
		if kind == "whole" {
			columns = l.whole
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(columns))).Draw(t, "column")
		wanted := rapid.SampledFrom(columns[name]).Draw(t, "value")
		return fmt.Sprintf("%s is %q", name, wanted), columnar.In(l.Schema.Col(name), wanted), func(r *plainRow) bool {
			return slices.Contains(r.keywords[name], wanted) || kind == "whole" && r.texts[name] == wanted
		}
	case "time":
		name := rapid.SampledFrom(l.times).Draw(t, "column")
		from, to := rapid.SampledFrom(times).Draw(t, "from"), rapid.SampledFrom(times).Draw(t, "to")
		if rapid.IntRange(0, 3).Draw(t, "open") == 0 {
			to = math.MaxInt64
		}
		return fmt.Sprintf("%s in %d to %d", name, from, to), columnar.Within(l.Schema.Col(name), from, to), func(r *plainRow) bool {
			v, ok := r.numbers[name]
			return ok && from <= v && (v < to || to == math.MaxInt64)
		}
	case "number":
		name := rapid.SampledFrom(l.numbers).Draw(t, "column")
		low := int64(rapid.IntRange(0, 5).Draw(t, "low")) * 10_000
		return fmt.Sprintf("%s from %d", name, low), columnar.Between(l.Schema.Col(name), low, low+20_000), func(r *plainRow) bool {
			v, ok := r.numbers[name]
			return ok && low <= v && v <= low+20_000
		}
	case "flag":
		name := rapid.SampledFrom(l.flags).Draw(t, "column")
		return name, columnar.Is(l.Schema.Col(name), true), func(r *plainRow) bool { return r.numbers[name] == 1 }
	case "null":
		name := rapid.SampledFrom(l.nulls).Draw(t, "column")
		return "no " + name, columnar.Null(l.Schema.Col(name)), func(r *plainRow) bool { return r.isNull(name) }
	default:
		ids := rapid.SliceOfN(rapid.IntRange(0, modelIDs), 1, 4).Draw(t, "ids")
		keys := make([][16]byte, len(ids))
		for i, n := range ids {
			keys[i] = modelID(n)
		}
		return fmt.Sprintf("ids %v", ids), columnar.IDs(keys...), func(r *plainRow) bool { return slices.Contains(keys, [16]byte(r.id)) }
	}
}

func (r *plainRow) isNull(name string) bool {
	_, number := r.numbers[name]
	_, text := r.texts[name]
	return !number && !text && len(r.keywords[name]) == 0
}

func (r *plainRow) contains(columns, tokens []string) bool {
	for _, token := range tokens {
		if !slices.ContainsFunc(columns, func(name string) bool { return strings.Contains(r.texts[name], token) }) {
			return false
		}
	}
	return true
}

// answer computes what the rows of a list answer to a query.
func (q plainQuery) answer(rows []*plainRow) (total int, page []string) {
	found := slices.DeleteFunc(slices.Clone(rows), func(r *plainRow) bool { return !q.holds(r) })
	total = len(found)
	if q.query.AfterID != nil {
		slices.SortFunc(found, func(a, b *plainRow) int { return a.compare(b, "", false) })
		found = slices.DeleteFunc(found, func(r *plainRow) bool { return bytes.Compare(r.id[:], q.query.AfterID[:]) <= 0 })
		n := min(q.query.Limit, len(found))
		for n > 0 && n < len(found) && found[n].id == found[n-1].id {
			n++
		}
		return total, hitsOf(found[:n])
	}
	slices.SortFunc(found, func(a, b *plainRow) int { return a.compare(b, q.order, q.query.Desc) })
	from := min(q.query.Offset, len(found))
	return total, hitsOf(found[from:min(from+q.query.Limit, len(found))])
}

func hitsOf(rows []*plainRow) []string {
	hits := []string{}
	for _, r := range rows {
		hits = append(hits, fmt.Sprintf("%s/%d@%d", r.id, r.sub, r.revision))
	}
	return hits
}

func hitsIn(result columnar.Result) []string {
	hits := []string{}
	for _, h := range result.Hits {
		hits = append(hits, fmt.Sprintf("%s/%d@%d", value.ID(h.ID), h.Sub, h.Revision))
	}
	return hits
}

// compare orders rows as lists do: what has no value is last in both
// directions, and what is equal is ordered by id.
func (r *plainRow) compare(o *plainRow, order string, desc bool) int {
	direction := 1
	if desc {
		direction = -1
	}
	if order != "" {
		if a, b := r.isNull(order), o.isNull(order); a != b {
			if a {
				return 1
			}
			return -1
		}
		c := cmp.Or(cmp.Compare(r.numbers[order], o.numbers[order]), cmp.Compare(r.texts[order], o.texts[order]))
		if c != 0 {
			return c * direction
		}
	}
	return cmp.Or(bytes.Compare(r.id[:], o.id[:]), cmp.Compare(r.sub, o.sub)) * direction
}

// modelIDs is how many records of a kind an organization may have.
const modelIDs = 14

// modelID is the id of the n-th record, whatever its kind and organization.
func modelID(n int) value.ID {
	id := value.MustID("01900000-0000-7000-8000-000000000000")
	id[15] = byte(n + 1)
	return id
}
