package columnar_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// parted is a list that is opened part by part, as its owner would.
type parted struct {
	schema *columnar.Schema
	view   *columnar.View
	parts  [][]columnar.Document
	opened []bool
	rounds int
}

func newParted(s *columnar.Schema, parts [][]columnar.Document) *parted {
	return &parted{schema: s, view: columnar.NewView(s), parts: parts, opened: make([]bool, len(parts))}
}

// open takes every other part from a segment.
func (p *parted) open(t failer, part int) {
	t.Helper()
	if p.opened[part] = true; part%2 == 0 {
		p.view.Apply(p.parts[part])
		return
	}
	segment.Load(p.view, wholeSegment(t, p.schema, segment.Encode(p.schema, p.parts[part])))
}

// closed returns the summaries of the parts that are not opened, and which parts
// they are.
func (p *parted) closed() (summaries []columnar.Summary, places []int) {
	for i, docs := range p.parts {
		if !p.opened[i] {
			v := columnar.NewView(p.schema)
			v.Apply(docs)
			summaries = append(summaries, v.Summary())
			places = append(places, i)
		}
	}
	return summaries, places
}

// query opens what it is told to until it can answer.
func (p *parted) query(t failer, q columnar.Query) columnar.Result {
	t.Helper()
	for p.rounds = 0; ; p.rounds++ {
		summaries, places := p.closed()
		open, before, outside := p.view.Plan(q, summaries)
		if len(open) == 0 {
			return p.view.QueryWithOffset(q, before, outside)
		}
		if !slices.IsSorted(open) || len(slices.Compact(slices.Clone(open))) != len(open) {
			t.Fatalf("Plan(%+v) opens %v, want rising places", q, open)
		}
		for _, i := range open {
			p.open(t, places[i])
		}
	}
}

func (p *parted) which() []int {
	list := []int{}
	for i, opened := range p.opened {
		if opened {
			list = append(list, i)
		}
	}
	return list
}

// split deals documents out to parts: by their time, as months would, or anyhow.
func split(t *rapid.T, records []record) [][]record {
	n := rapid.IntRange(1, 6).Draw(t, "parts")
	parts := make([][]record, n)
	byTime := rapid.IntRange(0, 2).Draw(t, "byTime") > 0
	for _, r := range records {
		at, dated := r.numbers[placed]
		part := 0
		switch {
		case byTime && dated:
			part = int(uint64(min(max(at, -3), 6)+3) * uint64(n) / 10)
		case !byTime:
			part = rapid.IntRange(0, n-1).Draw(t, "part")
		}
		parts[part] = append(parts[part], r)
	}
	return parts
}

func genPlannedQuery(t *rapid.T) (columnar.Query, condition) {
	q, c := genQuery(t)
	if rapid.Bool().Draw(t, "plain") {
		q.Search, q.AfterID, q.OrderBy = nil, nil, placed
		q.Limit = rapid.IntRange(0, 6).Draw(t, "few")
		q.Offset = rapid.IntRange(0, 40).Draw(t, "place")
		switch rapid.IntRange(0, 3).Draw(t, "about") {
		case 0:
			q.Filter, c = columnar.All(), condition{"everything", columnar.All(), func(record) bool { return true }}
		case 1:
			c = genRange(t, false)
			q.Filter = c.filter
		case 2:
			from, to := rapid.Int64Range(-4, 7).Draw(t, "from"), rapid.Int64Range(-4, 8).Draw(t, "to")
			c = condition{fmt.Sprint("placed in ", from, to), columnar.Within(placed, from, to), func(r record) bool {
				v, ok := r.numbers[placed]
				return ok && from <= v && v < to
			}}
			q.Filter = c.filter
		}
	}
	return q, c
}

func TestPartsAnswerAsOneView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{}
		m.apply(rapid.SliceOfN(genRecord(), 0, 60).Draw(t, "records"))
		live := []record{}
		for _, r := range m {
			if !r.deleted {
				live = append(live, r)
			}
		}
		slices.SortFunc(live, func(a, b record) int { return compareRecords(a, b, columnar.ByID, false) })
		parts := [][]columnar.Document{}
		for _, part := range split(t, live) {
			parts = append(parts, documents(part))
		}
		fresh := newParted(everything, parts)
		kept := newParted(everything, parts)
		for i := range parts {
			if rapid.IntRange(0, 3).Draw(t, "opened") == 0 {
				kept.open(t, i)
			}
		}
		for range 4 {
			q, c := genPlannedQuery(t)
			for _, p := range []*parted{newParted(everything, fresh.parts), kept} {
				got, want := p.query(t, q), m.query(q, c.holds)
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("%s, opened %v of %d (-want +got):\n%s", describe(q, c), p.which(), len(parts), diff)
				}
			}
		}
	})
}

var (
	orders = columnar.MustSchema("order",
		columnar.Column{Name: "status", Type: columnar.Keyword},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "paidAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "number", Type: columnar.Text, Search: true, Sort: true, Match: true},
	)
	status, createdAt, paidAt, updatedAt = orders.Col("status"), orders.Col("createdAt"), orders.Col("paidAt"), orders.Col("updatedAt")
	orderNumber                          = orders.Col("number")
)

const day = int64(24 * time.Hour / time.Millisecond)

// month is the first moment of the n-th month, and of all its successors.
func month(n int) int64 {
	return time.Date(2024, time.January+time.Month(n), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// monthsOfOrders has so many orders in each month, some paid a few days later, and
// all changed within a week, a few of them into the next month.
func monthsOfOrders(months, each int) [][]columnar.Document {
	parts := make([][]columnar.Document, months)
	random := rand.New(rand.NewPCG(5, 6))
	for m := range parts {
		for i := range each {
			n := m*each + i
			at := month(m) + (month(m+1)-month(m))*int64(i)/int64(each)
			b := orders.Build(uuid('o', n), 0).Keyword(status, fmt.Sprint("s", n%7)).Time(createdAt, at)
			if n%3 > 0 {
				b.Time(paidAt, at+random.Int64N(3*day))
			}
			b.Time(updatedAt, at+random.Int64N(7*day)).Text(orderNumber, fmt.Sprintf("R-%06d", n))
			parts[m] = append(parts[m], b.Document(at, at+1000))
		}
	}
	return parts
}

// Only what the answer depends on is opened: 24 months of 100 orders.
func TestPlanOpensFewParts(t *testing.T) {
	const months, each, size = 24, 100, 2400
	parts := monthsOfOrders(months, each)
	all := columnar.NewView(orders)
	for _, docs := range parts {
		all.Apply(docs)
	}
	every := []int{}
	for m := range months {
		every = append(every, m)
	}
	after := func(n int) *[16]byte { id := uuid('o', n); return &id }
	january := columnar.Within(createdAt, month(12), month(13))
	newest := func(q columnar.Query) columnar.Query {
		q.OrderBy, q.Desc, q.Limit = createdAt, true, 20
		return q
	}
	for _, row := range []struct {
		name  string
		query columnar.Query
		want  []int
	}{
		{"newest first", newest(columnar.Query{}), []int{23}},
		{"last page of the newest month", newest(columnar.Query{Offset: 80}), []int{23}},
		{"page across two months", newest(columnar.Query{Offset: 90}), []int{22, 23}},
		{"page in the middle", newest(columnar.Query{Offset: 1210}), []int{11}},
		{"last page", newest(columnar.Query{Offset: size - 20}), []int{0}},
		{"past the end", newest(columnar.Query{Offset: size}), []int{}},
		{"oldest first", columnar.Query{OrderBy: createdAt, Limit: 20}, []int{0}},
		{"everything", columnar.Query{OrderBy: createdAt, Limit: math.MaxInt}, every},
		{"count", columnar.Query{OrderBy: createdAt}, []int{}},
		{"count of those paid", columnar.Query{Filter: columnar.Not(columnar.Null(paidAt))}, every},
		{"one month", newest(columnar.Query{Filter: january}), []int{12}},
		{"one month by number", columnar.Query{Filter: january, OrderBy: orderNumber, Limit: 20}, []int{12}},
		{"one month's count", columnar.Query{Filter: january}, []int{}},
		{"until a moment", newest(columnar.Query{Filter: columnar.Within(createdAt, math.MinInt64, month(12))}), []int{11}},
		{"from the middle of a month", newest(columnar.Query{Filter: columnar.Within(createdAt, month(12)+day, math.MaxInt64)}), []int{12, 23}},
		{"until the middle of a month", newest(columnar.Query{Filter: columnar.Within(createdAt, math.MinInt64, month(23)+15*day)}), []int{23}},
		{"within a month", newest(columnar.Query{Filter: columnar.Within(createdAt, month(12)+day, month(12)+2*day)}), []int{12}},
		{"visible since", newest(columnar.Query{Filter: columnar.VisibleWithin(month(22)+1000, math.MaxInt64)}), []int{23}},
		{"one of two months", columnar.Query{Filter: columnar.Any(january, columnar.Within(createdAt, month(3), month(4))), OrderBy: createdAt, Limit: 20}, []int{3}},
		{"one month in a state", newest(columnar.Query{Filter: columnar.All(january, columnar.In(status, "s1"))}), []int{12}},
		{"in no state", newest(columnar.Query{Filter: columnar.In(status)}), []int{}},
		{"no id", newest(columnar.Query{Filter: columnar.IDs()}), []int{}},
		{"last changed", columnar.Query{OrderBy: updatedAt, Desc: true, Limit: 20}, []int{23}},
		{"first paid", columnar.Query{OrderBy: paidAt, Limit: 20}, []int{0}},
		{"not paid, at the end", columnar.Query{OrderBy: paidAt, Limit: 20, Offset: size - 20}, every},
		{"created never", newest(columnar.Query{Filter: columnar.Null(createdAt)}), []int{}},
		{"state", newest(columnar.Query{Filter: columnar.In(status, "s1")}), every},
		{"state from a month on", newest(columnar.Query{Filter: columnar.All(columnar.In(status, "s1"), columnar.Within(createdAt, month(22), math.MaxInt64))}), []int{22, 23}},
		{"an id", newest(columnar.Query{Filter: columnar.IDs(uuid('o', 1210))}), []int{12}},
		{"ids", newest(columnar.Query{Filter: columnar.IDs(uuid('o', 1), uuid('o', 2350), uuid('o', size))}), []int{0, 23}},
		{"state, searched", newest(columnar.Query{Filter: columnar.In(status, "s1"), Search: fold.Tokens("R-00001")}), every},
		{"search", newest(columnar.Query{Search: fold.Tokens("R-000010")}), every},
		{"empty search", newest(columnar.Query{Search: []string{""}}), []int{23}},
		{"by number", columnar.Query{OrderBy: orderNumber, Limit: 20}, every},
		{"walk", columnar.Query{AfterID: &[16]byte{}, OrderBy: createdAt, Limit: 20, Offset: size}, []int{0}},
		{"walk across two months", columnar.Query{AfterID: after(1190), Limit: 20}, []int{11, 12}},
		{"walk from a month's last", columnar.Query{AfterID: after(1199), Limit: 20}, []int{12}},
		{"walk's end", columnar.Query{AfterID: after(size - 1), Limit: 20}, []int{}},
		{"walk of one month", columnar.Query{AfterID: &[16]byte{}, Filter: january, Limit: 20}, []int{12}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newParted(orders, parts)
			if diff := gocmp.Diff(all.Query(row.query), p.query(t, row.query)); diff != "" {
				t.Errorf("(-one view +parts):\n%s", diff)
			}
			if got := p.which(); !slices.Equal(got, row.want) {
				t.Errorf("opens %v in %d rounds, want %v", got, p.rounds, row.want)
			}
			if p.rounds > 3 {
				t.Errorf("takes %d rounds, want at most 3", p.rounds)
			}
		})
	}
}

// Where every month reaches over all of the order, a page may be in any: they are
// opened in a few rounds, not one by one.
func TestOverlappingPartsAreOpenedInFewRounds(t *testing.T) {
	const months = 24
	random := rand.New(rand.NewPCG(9, 10))
	parts := make([][]columnar.Document, months)
	for m := range parts {
		for i := range 50 {
			at := month(m) + int64(i)*1000
			parts[m] = append(parts[m], orders.Build(uuid('o', m*50+i), 0).Time(createdAt, at).Time(updatedAt, random.Int64N(1e12)).Document(1, 1))
		}
	}
	all := columnar.NewView(orders)
	for _, docs := range parts {
		all.Apply(docs)
	}
	for _, offset := range []int{0, 600} {
		q := columnar.Query{OrderBy: updatedAt, Desc: true, Limit: 20, Offset: offset}
		p := newParted(orders, parts)
		if diff := gocmp.Diff(all.Query(q), p.query(t, q)); diff != "" {
			t.Errorf("(-one view +parts):\n%s", diff)
		}
		if p.rounds > 10 {
			t.Errorf("offset %d: %d rounds to open %v, want at most 10", offset, p.rounds, p.which())
		}
	}
}

func TestSummaryIsExact(t *testing.T) {
	v := columnar.NewView(orders)
	empty := columnar.Summary{Times: make([]columnar.TimeRange, 3)}
	if diff := gocmp.Diff(empty, v.Summary()); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
	v.Apply([]columnar.Document{
		orders.Build(number(1), 0).Keyword(status, "b").Time(createdAt, 5).Time(updatedAt, math.MinInt64).Document(1, 30),
		orders.Build(number(2), 0).Keyword(status, "a").Time(createdAt, 7).Time(updatedAt, math.MaxInt64).Document(1, 20),
		orders.Build(number(3), 0).Keyword(status, "b").Time(createdAt, -9).Document(1, 10),
		orders.Build(number(4), 0).Keyword(status, "c").Time(createdAt, 99).Time(paidAt, 99).Time(updatedAt, 99).Document(1, 99),
	})
	v.Apply([]columnar.Document{orders.Tombstone(number(4), 0, 2, 100)})
	want := columnar.Summary{Count: 3, IDs: columnar.IDRange{First: number(1), Last: number(3)}, Visible: columnar.Range{Min: 10, Max: 30}, Times: []columnar.TimeRange{
		{Range: columnar.Range{Min: -9, Max: 7}},
		{Nulls: 3},
		{Range: columnar.Range{Min: math.MinInt64, Max: math.MaxInt64}, Nulls: 1},
	}}
	if diff := gocmp.Diff(want, v.Summary()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
