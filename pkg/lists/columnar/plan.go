package columnar

import (
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
// load, and the caller asks again with the others. Each round opens at least one
// partition that can change the answer: a filter or a search may match some of its
// documents and the summary does not count which, or some of them may be on the page.
// The order of a Time column is known from the summaries; for other orders, and for
// AfterID, only partitions without a hit stay closed, unless the page is empty anyway.
//
// The view and the partitions must not change between Plan and QueryWithOffset. Plan
// panics as Query does.
func (v *View) Plan(q Query, partitions []Summary) (open []int, before, outside int) {
	v.checkOrder(&q)
	if len(partitions) == 0 {
		return nil, 0, 0
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	p := plan{view: v, query: &q, from: max(q.Offset, 0), spans: make([]span, 0, len(partitions))}
	if q.AfterID != nil {
		p.from = 0
	}
	p.to = p.from + min(max(q.Limit, 0), math.MaxInt-p.from)
	p.rank = -1
	if q.AfterID == nil && q.OrderBy != ByID && v.schema.Column(q.OrderBy).Type == Time {
		p.rank = v.schema.timeRank(q.OrderBy)
	}
	searching := len(searchTokens(q.Search)) > 0
	for i := range partitions {
		s := &partitions[i]
		switch v.coverageOf(s, &q.Filter, searching) {
		case coversSome:
			if m, ok := p.counts(s, searching); ok {
				outside += m.count
				p.add(i, s, m, false)
				continue
			}
			open = append(open, i)
			p.add(i, s, p.all(s), true)
		case coversAll:
			outside += s.Count
			p.add(i, s, p.all(s), false)
		case coversNone:
		}
	}
	if outside > 0 && p.from < p.to {
		before, open = p.locate(open)
	}
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
	switch {
	case s.Count == 0:
		return coversNone
	case len(s.Times) != v.schema.timeCount():
		return coversSome // The schema has grown since: only the documents tell.
	case searching:
		return min(coversSome, s.coverage(v.schema, f))
	}
	return s.coverage(v.schema, f)
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

// span is those hits of a partition that have a value in the column of the order, or
// those that are null. first and last bound the values.
type span struct {
	partition     int
	partial       bool // not all documents are hits
	first, last   position
	count         int
	before, reach bool // is before the page; may have documents on it
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

// counts tells how many documents of a partition are hits, where its summary does.
func (p *plan) counts(s *Summary, searching bool) (matches, bool) {
	if searching || !p.knows(s) {
		return matches{}, false
	}
	return s.matches(p.view.schema, &p.query.Filter, p.rank)
}

// knows says whether a summary is of the schema as it is.
func (p *plan) knows(s *Summary) bool { return len(s.Times) == p.view.schema.timeCount() }

// all are all documents of a summary.
func (p *plan) all(s *Summary) matches {
	if !p.knows(s) {
		return matches{count: s.Count}
	}
	return s.all(p.rank)
}

// add adds those documents of a partition that are hits, or may be when it is partial.
func (p *plan) add(partition int, s *Summary, m matches, partial bool) {
	null := position{null: true}
	whole := span{partition: partition, partial: partial, first: null, last: null, count: m.count, reach: true}
	if p.rank < 0 && m.count > 0 {
		p.spans = append(p.spans, whole)
	}
	if p.rank < 0 || !p.knows(s) {
		return
	}
	if m.nulls < m.count {
		r, valued := s.Times[p.rank], whole
		valued.count, valued.first, valued.last = m.count-m.nulls, position{value: r.Min}, position{value: r.Max}
		if p.query.Desc {
			valued.first, valued.last = position{value: ^r.Max}, position{value: ^r.Min}
		}
		p.spans = append(p.spans, valued)
	}
	if whole.count = m.nulls; m.nulls > 0 {
		p.spans = append(p.spans, whole)
	}
}

// locate decides which spans may have documents on the page and adds the partitions
// to open for them. It returns how many documents are certainly before the page, which
// holds when nothing is to be opened.
func (p *plan) locate(open []int) (before int, all []int) {
	p.decide(false)
	if len(open) > 0 {
		// Partitions that are opened anyway have any number of hits. Others are opened
		// with them only if they may have documents on the page both when all of those
		// are hits and when none is.
		p.decide(true)
	}
	for i := range p.spans {
		if p.spans[i].before {
			before += p.spans[i].count
		}
	}
	return before, p.choose(open)
}

// decide takes reach from the spans that are certainly before or behind the page,
// where all documents of partial spans are hits (full) or none is.
func (p *plan) decide(full bool) {
	slices.SortFunc(p.spans, func(a, b span) int { return a.first.compare(b.first) })
	// A span that starts later has more before it: those behind the page are the last.
	behind := sort.Search(len(p.spans), func(i int) bool { return p.isBehind(&p.spans[i], full) })
	for i := range p.spans[behind:] {
		p.spans[behind+i].reach = false
	}
	if p.from == 0 {
		return
	}
	slices.SortFunc(p.spans, func(a, b span) int { return a.last.compare(b.last) })
	reaching := sort.Search(len(p.spans), func(i int) bool { return !p.isBefore(&p.spans[i], full) })
	for i := range p.spans[:reaching] {
		p.spans[i].reach, p.spans[i].before = false, true
	}
}

// isBehind says whether the hits before x fill the page; ties do not count. It looks
// at the view only if the summaries do not tell.
func (p *plan) isBehind(x *span, full bool) bool {
	n := p.outsideUpTo(x.first, false, full)
	return n >= p.to || n+p.view.table.live >= p.to && n+p.inViewUpTo(x.first, false) >= p.to
}

// isBefore says whether so few hits precede the last document of x, ties included,
// that all of x is before the page.
func (p *plan) isBefore(x *span, full bool) bool {
	n := p.outsideUpTo(x.last, true, full)
	return n <= p.from && (n+p.view.table.live <= p.from || n+p.inViewUpTo(x.last, true) <= p.from)
}

// outsideUpTo counts the documents of partitions that certainly precede a position,
// or, with ties, those that may precede or share it.
func (p *plan) outsideUpTo(x position, ties, full bool) int {
	n := 0
	for i := range p.spans {
		s := &p.spans[i]
		if (full || !s.partial) && (ties && s.first.compare(x) <= 0 || !ties && s.last.compare(x) < 0) {
			n += s.count
		}
	}
	return n
}

// choose adds the next partitions to open. Those that together fill the page are
// needed if no others overlap with them. If others do, the documents of the first may
// rule them out. At least a quarter of the candidates is opened, so that a few rounds
// suffice.
func (p *plan) choose(open []int) []int {
	var reaching []span
	for _, x := range p.spans {
		if x.reach && !x.partial {
			reaching = append(reaching, x)
		}
	}
	if len(reaching) == 0 {
		return open
	}
	slices.SortFunc(reaching, func(a, b span) int { return a.first.compare(b.first) })
	at := p.outsideUpTo(reaching[0].first, false, false) + p.inViewUpTo(reaching[0].first, false)
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
