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
	v.check(&q)
	v.mu.RLock()
	defer v.mu.RUnlock()
	searching := len(searchTokens(q.Search)) > 0
	var all []int
	for i := range partitions {
		s := &partitions[i]
		switch covers := s.coverage(v.schema, &q.Filter); {
		case s.Count == 0 || covers == coversNone:
		case searching || covers == coversSome:
			open = append(open, i)
		default:
			all = append(all, i)
			outside += s.Count
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
	defer v.scratch.Put(p.scratch)
	for _, i := range all {
		p.add(i, &partitions[i])
	}
	before, open = p.locate()
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

	hits    Bits // of the view
	total   int
	scratch *Bits
}

// span is those documents of a partition that have a value in the column of the order,
// or those that are null. first and last bound the places of their values in the order: a
// descending order has complements, and atEnd is that of null, or of every document where
// the order is not known.
type span struct {
	partition   int
	first, last int64
	count       int
}

const atEnd = math.MaxInt64

// newPlan finds the hits in the view. Its caller holds mu.
func (v *View) newPlan(q *Query) *plan {
	p := &plan{view: v, query: q, from: max(q.Offset, 0), rank: -1}
	p.to = p.from + min(q.Limit, math.MaxInt-p.from)
	if q.OrderBy != ByID && v.schema.Column(q.OrderBy).Type == Time {
		p.rank = v.schema.timeRank(q.OrderBy)
	}
	filter := v.table.predicate(&q.Filter)
	p.scratch, p.hits = v.hits()
	p.total = v.table.find(&filter, nil, p.hits)
	return p
}

// add adds the documents of a partition.
func (p *plan) add(partition int, s *Summary) {
	nulls := s.Count
	if p.rank >= 0 {
		r := s.Times[p.rank]
		nulls = r.Nulls
		x := span{partition, r.Min, r.Max, s.Count - nulls}
		if p.query.Desc {
			x.first, x.last = ^r.Max, ^r.Min
		}
		if x.count > 0 {
			p.spans = append(p.spans, x)
		}
	}
	if nulls > 0 {
		p.spans = append(p.spans, span{partition, atEnd, atEnd, nulls})
	}
}

// locate returns how many documents of the partitions are certainly before the page,
// and the partitions to open because they may have documents on it.
func (p *plan) locate() (before int, open []int) {
	slices.SortFunc(p.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	// A span that starts later has more before it: those behind the page are the last.
	behind := sort.Search(len(p.spans), func(i int) bool { return p.atLeast(p.to, p.spans[i].first, false) })
	reaching := slices.Clone(p.spans[:behind])
	// All of a span is before the page if few enough precede its last document, ties included.
	slices.SortFunc(reaching, func(a, b span) int { return cmp.Compare(a.last, b.last) })
	passed := sort.Search(len(reaching), func(i int) bool { return p.atLeast(p.from+1, reaching[i].last, true) })
	for i := range reaching[:passed] {
		before += reaching[i].count
	}
	return before, p.choose(reaching[passed:])
}

// choose returns the next partitions to open. Those that together fill the page are
// needed if no others overlap with them. If others do, the documents of the first may
// rule them out. At least a quarter of the candidates is opened, so that a few rounds
// suffice.
func (p *plan) choose(reaching []span) (open []int) {
	if len(reaching) == 0 {
		return nil
	}
	slices.SortFunc(reaching, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	at := p.outsideUpTo(reaching[0].first, false) + p.inViewUpTo(reaching[0].first, false)
	for i, x := range reaching {
		// Nulls tie with one another, so that nothing rules one of them out.
		if x.first == atEnd || at < p.to || 4*i < len(reaching) {
			open = append(open, x.partition)
			at += min(x.count, p.to-at)
		}
	}
	slices.Sort(open)
	return slices.Compact(open)
}

// atLeast reports whether n hits certainly precede a place in the order or, with ties,
// may precede or share it. The view's are counted only where they decide.
func (p *plan) atLeast(n int, x int64, ties bool) bool {
	if n -= p.outsideUpTo(x, ties); n <= 0 || n > p.total {
		return n <= 0
	}
	return p.inViewUpTo(x, ties) >= n
}

// outsideUpTo counts those of the partitions that are not open.
func (p *plan) outsideUpTo(x int64, ties bool) int {
	n := 0
	for _, s := range p.spans {
		if ties && s.first <= x || !ties && s.last < x {
			n += s.count
		}
	}
	return n
}

// inViewUpTo counts those of the view.
func (p *plan) inViewUpTo(x int64, ties bool) int {
	switch {
	case x == atEnd && ties:
		return p.total
	case p.rank < 0, x == math.MinInt64 && !ties:
		return 0
	case !ties:
		x--
	}
	lo, hi := int64(math.MinInt64), x
	if p.query.Desc {
		lo, hi = ^x, math.MaxInt64
	}
	n := 0
	for number, g := range p.view.table.groups {
		if g != nil {
			rows := *(*RowSet)(p.hits[number*rowWords:])
			g.keepBetween(p.query.OrderBy, lo, hi, &rows)
			n += rows.Count()
		}
	}
	return n
}
