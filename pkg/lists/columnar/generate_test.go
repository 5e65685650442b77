package columnar_test

import (
	"fmt"
	"math"
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
			compared := r.texts[c]
			if c != keys {
				compared = compared[:min(1, len(compared))]
			}
			return slices.ContainsFunc(compared, func(have string) bool {
				return slices.ContainsFunc(values, func(v string) bool { return fold.String(v) == fold.String(have) })
			})
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
