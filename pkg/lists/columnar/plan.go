package columnar

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
)

// Plan says how to answer a query about the documents of the view and those of
// partitions that are not loaded, of which only the summaries are known. Each document
// is in the view or in one partition.
//
// When open is empty, QueryWithOffset with before and outside answers exactly as Query
// would if the view had all documents. Otherwise open has the indexes of partitions to
// load, and the caller asks again with the others. First come all partitions of which
// the filter or the search may hold for some documents only. Of the others Plan opens
// those that may have documents of the page: the summaries place them in the order of a
// Time column and in a walk by AfterID. For another order Plan opens all that have a
// hit, unless the page is empty anyway.
//
// The view and the partitions must not change between Plan and QueryWithOffset. Plan
// panics as Query does.
func (v *View) Plan(q Query, partitions []Summary) (open []int, before, outside int) {
	v.checkOrder(&q)
	v.mu.RLock()
	defer v.mu.RUnlock()
	searching := len(searchTokens(q.Search)) > 0
	var all []int
	for i := range partitions {
		switch s := &partitions[i]; v.coverageOf(s, &q.Filter, searching) {
		case coversSome:
			open = append(open, i)
		case coversAll:
			all = append(all, i)
			outside += s.Count
		case coversNone:
		}
	}
	switch {
	case len(open) > 0:
		return open, 0, 0
	case len(all) == 0 || q.Limit <= 0:
		return nil, 0, outside
	case q.AfterID != nil:
		return v.planWalk(&q, partitions, all), 0, outside
	}
	p := v.newPlan(&q)
	for _, i := range all {
		p.add(i, &partitions[i])
	}
	before, open = p.locate()
	if p.scratch != nil {
		v.scratch.Put(p.scratch)
	}
	return open, before, outside
}

// QueryWithOffset is Query for a view that lacks some hits: outside is how many, and
// before is how many of them precede the page. None of the others is on it.
func (v *View) QueryWithOffset(q Query, before, outside int) Result {
	if q.AfterID == nil {
		q.Offset = max(q.Offset-before, 0)
	}
	r := v.Query(q)
	r.Total += outside
	return r
}

func (v *View) coverageOf(s *Summary, f *Filter, searching bool) coverage {
	covers := s.coverage(v.schema, f)
	switch {
	case s.Count == 0:
		return coversNone
	case searching:
		return min(coversSome, covers)
	}
	return covers
}

// planWalk returns those of the partitions, whose documents are all hits, that may
// have documents on a page of a walk. Its caller holds mu.
func (v *View) planWalk(q *Query, partitions []Summary, all []int) (open []int) {
	ahead := slices.DeleteFunc(all, func(i int) bool { return bytes.Compare(partitions[i].IDs.Last[:], q.AfterID[:]) <= 0 })
	if len(ahead) == 0 {
		return nil
	}
	first := func(i int) []byte { return partitions[i].IDs.First[:] }
	slices.SortFunc(ahead, func(a, b int) int { return bytes.Compare(first(a), first(b)) })
	page, _ := v.ask(q)
	chosen := 0 // documents behind AfterID
	for _, i := range ahead {
		inView, _ := slices.BinarySearchFunc(page, first(i), func(o uint32, id []byte) int {
			key := v.table.key(o)
			return bytes.Compare(key.ID[:], id)
		})
		if inView+chosen >= q.Limit {
			break
		}
		open = append(open, i)
		if bytes.Compare(first(i), q.AfterID[:]) > 0 {
			chosen += partitions[i].Count
		}
	}
	slices.Sort(open)
	return open
}

// plan finds the partitions that may have documents on a page: the hits from from up
// to to, exclusive, in the order of all hits.
type plan struct {
	view     *View
	query    *Query
	from, to int
	rank     int // of the Time column of the order; -1 when the summaries do not know the order
	spans    []span

	counted bool
	hits    Bits // of the view; nil when every document is a hit
	total   int
	scratch *Bits
}

// span is those documents of a partition that have a value in the column of the order,
// or those that are null. first and last bound the values.
type span struct {
	partition   int
	first, last position
	count       int
}

// position is a value in the order; a descending order has complements. Null is last.
// Where the order is not known, all positions are null.
type position struct {
	null  bool
	value int64
}

func (a position) compare(b position) int {
	switch {
	case a.null && b.null:
		return 0
	case a.null:
		return 1
	case b.null:
		return -1
	}
	return cmp.Compare(a.value, b.value)
}

func (v *View) newPlan(q *Query) *plan {
	p := &plan{view: v, query: q, from: max(q.Offset, 0), rank: -1}
	p.to = p.from + min(q.Limit, math.MaxInt-p.from)
	if q.OrderBy != ByID && v.schema.Column(q.OrderBy).Type == Time {
		p.rank = v.schema.timeRank(q.OrderBy)
	}
	return p
}

// add adds the documents of a partition.
func (p *plan) add(partition int, s *Summary) {
	null, nulls := position{null: true}, s.Count
	if p.rank >= 0 {
		r := s.Times[p.rank]
		nulls = r.Nulls
		x := span{partition: partition, first: position{value: r.Min}, last: position{value: r.Max}, count: s.Count - nulls}
		if p.query.Desc {
			x.first, x.last = position{value: ^r.Max}, position{value: ^r.Min}
		}
		if x.count > 0 {
			p.spans = append(p.spans, x)
		}
	}
	if nulls > 0 {
		p.spans = append(p.spans, span{partition: partition, first: null, last: null, count: nulls})
	}
}

// locate returns how many documents of the partitions are certainly before the page,
// and the partitions to open because they may have documents on it.
func (p *plan) locate() (before int, open []int) {
	slices.SortFunc(p.spans, func(a, b span) int { return a.first.compare(b.first) })
	// A span that starts later has more before it: those behind the page are the last.
	behind := sort.Search(len(p.spans), func(i int) bool { return p.isBehind(&p.spans[i]) })
	reaching := slices.Clone(p.spans[:behind])
	slices.SortFunc(reaching, func(a, b span) int { return a.last.compare(b.last) })
	passed := sort.Search(len(reaching), func(i int) bool { return !p.isBefore(&reaching[i]) })
	for i := range reaching[:passed] {
		before += reaching[i].count
	}
	return before, p.choose(reaching[passed:])
}

// isBehind says whether the hits before x fill the page; ties do not count. It counts
// in the view only if the summaries do not say.
func (p *plan) isBehind(x *span) bool {
	n := p.outsideUpTo(x.first, false)
	return n >= p.to || n+p.view.table.live >= p.to && n+p.inViewUpTo(x.first, false) >= p.to
}

// isBefore says whether so few hits precede the last document of x, ties included,
// that all of x is before the page.
func (p *plan) isBefore(x *span) bool {
	n := p.outsideUpTo(x.last, true)
	return n <= p.from && (n+p.view.table.live <= p.from || n+p.inViewUpTo(x.last, true) <= p.from)
}

// outsideUpTo counts the documents of partitions that certainly precede a position,
// or, with ties, those that may precede or share it.
func (p *plan) outsideUpTo(x position, ties bool) int {
	n := 0
	for i := range p.spans {
		s := &p.spans[i]
		if ties && s.first.compare(x) <= 0 || !ties && s.last.compare(x) < 0 {
			n += s.count
		}
	}
	return n
}

// choose returns the next partitions to open. Those that together fill the page are
// needed if no others overlap with them. If others do, the documents of the first may
// rule them out. At least a quarter of the candidates is opened, so that a few rounds
// suffice.
func (p *plan) choose(reaching []span) (open []int) {
	if len(reaching) == 0 {
		return nil
	}
	slices.SortFunc(reaching, func(a, b span) int { return a.first.compare(b.first) })
	at := p.outsideUpTo(reaching[0].first, false) + p.inViewUpTo(reaching[0].first, false)
	for i, x := range reaching {
		// Nulls tie with one another, so that nothing rules one of them out.
		if x.first.null || at < p.to || 4*i < len(reaching) {
			open = append(open, x.partition)
			at += min(x.count, p.to-at)
		}
	}
	slices.Sort(open)
	return slices.Compact(open)
}

// inViewUpTo counts the hits in the view that precede a position, or, with ties, also
// those that may share it.
func (p *plan) inViewUpTo(x position, ties bool) int {
	p.findHits()
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case x.null && ties:
		return p.total
	case p.rank < 0, !x.null && !ties && x.value == math.MinInt64:
		return 0
	case x.null:
	case ties:
		hi = x.value
	default:
		hi = x.value - 1
	}
	if p.query.Desc && !x.null {
		lo, hi = ^hi, math.MaxInt64
	}
	return p.countBetween(lo, hi)
}

// findHits finds the hits in the view, once.
func (p *plan) findHits() {
	if p.counted {
		return
	}
	p.counted = true
	t := p.view.table
	filter := t.predicate(&p.query.Filter)
	if p.total = t.live; filter.op == opAll && len(filter.of) == 0 {
		return
	}
	p.scratch, p.hits = p.view.hits()
	p.total = t.find(&filter, nil, p.hits)
}

// countBetween counts the hits in the view whose value in the column of the order
// lies in [lo, hi].
func (p *plan) countBetween(lo, hi int64) int {
	t, col := p.view.table, p.query.OrderBy
	if o := t.orderings[col].Load(); o != nil && p.hits == nil {
		return t.rank(o, hi, true) - t.rank(o, lo, false)
	}
	n := 0
	for number, g := range t.groups {
		if g == nil {
			continue
		}
		rows := g.Live
		if p.hits != nil {
			rows = *(*RowSet)(p.hits[number*rowWords:])
		}
		g.keepBetween(col, lo, hi, &rows)
		n += rows.Count()
	}
	return n
}

// rank counts the documents of an ordering with a value less than v, or, with ties,
// also those with v.
func (t *table) rank(o *ordering, v int64, ties bool) int {
	return sort.Search(len(o.sets[0]), func(i int) bool {
		g, row := t.at(o.sets[0][i])
		value := g.Columns[o.col].Values.At(row)
		return value > v || value == v && !ties
	})
}
