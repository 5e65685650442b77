package columnar_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

var words = []string{
	"", "a", "A", "ab", "abc", "shirt", "Shirt", "red shirt", "T-Shirt 12", "12", "Ünï", "uni", "straße",
	"STRASSE", "日本", "日本語", "\u0301", "a\x00b", "x y", "organic cotton shirt", "organic cotton shirt, long sleeves",
	"organic cotton shorts", "ıi", "İ", "zzzzzzz", "zzzzzzzz", "zzzzzzz\x00",
}

var (
	genWord   = rapid.OneOf(rapid.SampledFrom(words), rapid.StringN(0, 6, -1))
	genNumber = rapid.OneOf(rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{0, 255, 256, 70_000, 1 << 33, math.MinInt64, math.MaxInt64}))
	genSite   = rapid.SampledFrom([]string{"A", "a", "B", "c", "d", "e", "f", "\xfe\xff"})
)

func genRecord() *rapid.Generator[record] {
	return rapid.Custom(func(t *rapid.T) record {
		r := record{
			sub:      uint8(rapid.SampledFrom([]int{0, 0, 0, 1, 255}).Draw(t, "sub")),
			revision: int64(rapid.IntRange(0, 6).Draw(t, "revision")),
			visible:  genNumber.Draw(t, "visible"),
			deleted:  rapid.IntRange(0, 4).Draw(t, "deleted") == 0,
			keywords: map[columnar.Col][]string{}, bools: map[columnar.Col]bool{},
			numbers: map[columnar.Col]int64{}, texts: map[columnar.Col][]string{},
		}
		r.id[15] = byte(rapid.IntRange(0, 25).Draw(t, "id"))
		if !r.deleted {
			r.fill(t)
		}
		return r
	})
}

func (r record) fill(t *rapid.T) {
	for _, c := range keywordCols {
		r.keywords[c] = rapid.SliceOfN(genSite, 0, 3).Draw(t, "keywords")
	}
	for _, c := range numberCols {
		if rapid.Bool().Draw(t, "set") {
			r.numbers[c] = genNumber.Draw(t, "number")
		}
	}
	if rapid.Bool().Draw(t, "set") {
		r.bools[active] = rapid.Bool().Draw(t, "bool")
	}
	for _, c := range textCols {
		r.texts[c] = rapid.SliceOfN(genWord, 0, 2).Draw(t, "texts")
	}
}

// condition is a filter beside what it means.
type condition struct {
	text   string
	filter columnar.Filter
	holds  func(record) bool
}

func genCondition(depth int) *rapid.Generator[condition] {
	return rapid.Custom(func(t *rapid.T) condition {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		if depth == 0 {
			kind = rapid.IntRange(3, 9).Draw(t, "leaf")
		}
		switch kind {
		case 0, 1, 2:
			return genComposite(t, kind, depth)
		case 3:
			return genIn(t)
		case 4:
			return genNull(t)
		case 5:
			v := rapid.Bool().Draw(t, "is")
			return condition{fmt.Sprint("active=", v), columnar.Is(active, v), func(r record) bool {
				b, ok := r.bools[active]
				return ok && b == v
			}}
		case 6, 7:
			return genRange(t, kind == 6)
		case 8:
			from, to := genNumber.Draw(t, "from"), genNumber.Draw(t, "to")
			return condition{fmt.Sprint("visible in ", from, to), columnar.VisibleWithin(from, to), func(r record) bool {
				return from <= r.visible && (r.visible < to || to == math.MaxInt64)
			}}
		default:
			ids := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "ids")
			var list [][16]byte
			for _, b := range ids {
				list = append(list, [16]byte{15: b % 32})
			}
			return condition{fmt.Sprint("id in ", ids), columnar.IDs(list...), func(r record) bool { return slices.Contains(list, r.id) }}
		}
	})
}

func genComposite(t *rapid.T, kind, depth int) condition {
	if kind == 2 {
		c := genCondition(depth-1).Draw(t, "not")
		return condition{"not(" + c.text + ")", columnar.Not(c.filter), func(r record) bool { return !c.holds(r) }}
	}
	parts := rapid.SliceOfN(genCondition(depth-1), 0, 3).Draw(t, "parts")
	var filters []columnar.Filter
	text := []string{}
	for _, p := range parts {
		filters = append(filters, p.filter)
		text = append(text, p.text)
	}
	if kind == 0 {
		return condition{"all(" + strings.Join(text, ", ") + ")", columnar.All(filters...), func(r record) bool {
			return !slices.ContainsFunc(parts, func(c condition) bool { return !c.holds(r) })
		}}
	}
	return condition{"any(" + strings.Join(text, ", ") + ")", columnar.Any(filters...), func(r record) bool {
		return slices.ContainsFunc(parts, func(c condition) bool { return c.holds(r) })
	}}
}

func genIn(t *rapid.T) condition {
	if rapid.Bool().Draw(t, "text") {
		c := rapid.SampledFrom(matchCols).Draw(t, "column")
		values := rapid.SliceOfN(genWord, 0, 3).Draw(t, "values")
		return condition{fmt.Sprintf("%d in %q", c, values), columnar.In(c, values...), func(r record) bool {
			return len(r.texts[c]) > 0 && slices.ContainsFunc(values, func(v string) bool { return fold.String(v) == fold.String(r.texts[c][0]) })
		}}
	}
	c := rapid.SampledFrom(keywordCols).Draw(t, "column")
	values := rapid.SliceOfN(genSite, 0, 6).Draw(t, "values")
	return condition{fmt.Sprintf("%d in %q", c, values), columnar.In(c, values...), func(r record) bool {
		return slices.ContainsFunc(r.keywords[c], func(have string) bool {
			return slices.ContainsFunc(values, func(v string) bool {
				return v == have || c == sites && fold.String(v) == fold.String(have)
			})
		})
	}}
}

func genNull(t *rapid.T) condition {
	c := rapid.SampledFrom(slices.Concat(keywordCols, numberCols, matchCols, []columnar.Col{active})).Draw(t, "column")
	return condition{fmt.Sprint(c, " is null"), columnar.Null(c), func(r record) bool {
		_, number := r.numbers[c]
		_, boolean := r.bools[c]
		return !number && !boolean && len(r.keywords[c]) == 0 && len(r.texts[c]) == 0
	}}
}

func genRange(t *rapid.T, number bool) condition {
	lo, hi := genNumber.Draw(t, "lo"), genNumber.Draw(t, "hi")
	if number {
		return condition{fmt.Sprint("price in ", lo, hi), columnar.Between(price, lo, hi), func(r record) bool {
			v, ok := r.numbers[price]
			return ok && lo <= v && v <= hi
		}}
	}
	return condition{fmt.Sprint("placed in ", lo, hi), columnar.Within(placed, lo, hi), func(r record) bool {
		v, ok := r.numbers[placed]
		return ok && lo <= v && (v < hi || hi == math.MaxInt64)
	}}
}

func genQuery(t *rapid.T) (columnar.Query, condition) {
	c := genCondition(2).Draw(t, "filter")
	q := columnar.Query{
		Filter:  c.filter,
		OrderBy: rapid.SampledFrom(sortCols).Draw(t, "orderBy"),
		Desc:    rapid.Bool().Draw(t, "desc"),
		Offset:  rapid.SampledFrom([]int{0, 0, 1, 2, 5, 12, 20, math.MaxInt, -1}).Draw(t, "offset"),
		Limit:   rapid.SampledFrom([]int{1, 2, 5, 100, math.MaxInt, 0, -1}).Draw(t, "limit"),
	}
	q.Search = append(q.Search, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "shirt", "t-s", "uni", "ss", "日", "本語", "\x00", "zzzzzzz", "x y", "", "i"}), 0, 2).Draw(t, "search")...)
	if rapid.IntRange(0, 4).Draw(t, "walk") == 0 {
		q.AfterID = &[16]byte{15: byte(rapid.IntRange(0, 26).Draw(t, "after"))}
	}
	return q, c
}

func describe(q columnar.Query, c condition) string {
	after := ""
	if q.AfterID != nil {
		after = fmt.Sprintf(" after %x", *q.AfterID)
	}
	return fmt.Sprintf("%s search %q order %d desc %v offset %d limit %d%s", c.text, q.Search, q.OrderBy, q.Desc, q.Offset, q.Limit, after)
}

func wideID(n int) (id [16]byte) {
	// Spread over the order of ids, so that new ones land everywhere.
	x := uint64(n) * 0x9e3779b97f4a7c15
	for i := range 8 {
		id[i] = byte(x >> (8 * i))
	}
	id[15] = byte(n)
	return id
}

func randomRecord(random *rand.Rand, ids int, round int64) record {
	r := record{
		id: wideID(random.IntN(ids)), revision: round - int64(random.IntN(3)), visible: round*1000 + int64(random.IntN(1000)),
		deleted: random.IntN(10) == 0,
	}
	if r.deleted {
		return r
	}
	n := random.IntN(1_000_000)
	r.keywords = map[columnar.Col][]string{
		state: {fmt.Sprint("s", n%5)},
		sites: [][]string{{}, {fmt.Sprint("site ", n%7)}, {fmt.Sprint("unique ", n), fmt.Sprint("site ", n%7)}}[n%3],
	}
	r.bools = map[columnar.Col]bool{active: n%3 == 0}
	r.numbers = map[columnar.Col]int64{placed: int64(n) << (round % 40)}
	if n%4 != 0 {
		r.numbers[price] = int64(n % 1000)
	}
	r.texts = map[columnar.Col][]string{
		name: {words[n%len(words)] + " " + words[n/31%len(words)]},
		sku:  {fmt.Sprintf("SKU-%06d", n)},
		tags: {words[n/7%len(words)], words[n/11%len(words)]},
		ref:  {fmt.Sprint(n % 400)},
	}
	return r
}

func randomQuery(random *rand.Rand, ids int) (columnar.Query, condition) {
	n := random.IntN(1000)
	some := []condition{
		{"everything", columnar.All(), func(record) bool { return true }},
		{"state", columnar.In(state, "s1", "s3"), func(r record) bool { return r.keywords[state][0] == "s1" || r.keywords[state][0] == "s3" }},
		{"site", columnar.In(sites, fmt.Sprint("SITE ", n%8)), func(r record) bool { return slices.Contains(r.keywords[sites], fmt.Sprint("site ", n%8)) }},
		{"no site", columnar.Null(sites), func(r record) bool { return len(r.keywords[sites]) == 0 }},
		{"sites", columnar.In(sites, "site 1", "site 2", "site 3", "site 4", fmt.Sprint("unique ", n)), func(r record) bool {
			return slices.ContainsFunc(r.keywords[sites], func(s string) bool { return s >= "site 1" && s <= "site 4" || s == fmt.Sprint("unique ", n) })
		}},
		{"placed", columnar.Within(placed, int64(n)<<20, math.MaxInt64), func(r record) bool { return int64(n)<<20 <= r.numbers[placed] }},
		{"active", columnar.Is(active, true), func(r record) bool { return r.bools[active] }},
		{"price", columnar.Between(price, int64(n/2), int64(n)), func(r record) bool {
			p, ok := r.numbers[price]
			return ok && int64(n/2) <= p && p <= int64(n)
		}},
		{"no price", columnar.Null(price), func(r record) bool { _, ok := r.numbers[price]; return !ok }},
		{"ref", columnar.In(ref, fmt.Sprint(n)), func(r record) bool { return r.texts[ref][0] == fmt.Sprint(n) }},
		{"visible", columnar.VisibleWithin(int64(n)*30, 35_000), func(r record) bool { return int64(n)*30 <= r.visible && r.visible < 35_000 }},
	}
	a, b := some[random.IntN(len(some))], some[random.IntN(len(some))]
	q := columnar.Query{
		Filter: columnar.All(a.filter, b.filter), OrderBy: sortCols[random.IntN(len(sortCols))], Desc: random.IntN(2) == 0,
		Offset: random.IntN(ids) * random.IntN(2), Limit: 50,
	}
	if random.IntN(3) == 0 {
		tokens := []string{"shirt", "o", "organic cotton", fmt.Sprintf("-%03d", n), fmt.Sprintf("sku-%04d", n), "zzzzzzzz", "u-", "sku-", "日", "0", "x", "\x00"}
		for range 1 + random.IntN(2) {
			q.Search = append(q.Search, tokens[random.IntN(len(tokens))])
		}
	}
	if random.IntN(5) == 0 {
		id := wideID(random.IntN(ids))
		q.AfterID = &id
	}
	return q, condition{a.text + " and " + b.text, q.Filter, func(r record) bool { return a.holds(r) && b.holds(r) }}
}
