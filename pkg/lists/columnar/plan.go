package columnar

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Plan says how to answer a query about the documents of the view and of parts
// that are not in it, of which only the summaries are at hand. Documents are in one
// part or in the view, never in two.
//
// When open is empty, QueryBeside with before and beside gives exactly what Query
// would if all were in the view. Otherwise open names parts, by their places in
// parts, to bring into the view; then Plan is to be asked again with the others.
// Each time at least one part is opened that the answer may depend on: one of which
// a filter or a search may choose some documents, or one that may reach into the
// page. A Time column's order is known from the summaries; for any other order, and
// for AfterID, parts without a hit are all that stay closed, unless the page is
// empty anyway.
//
// The view must not change between Plan and QueryBeside, nor parts go out of date.
// Plan panics as Query does.
func (v *View) Plan(q Query, parts []Summary) (open []int, before, beside int) {
	v.checkOrder(&q)
	if len(parts) == 0 {
		return nil, 0, 0
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	p := plan{view: v, query: &q, from: max(q.Offset, 0)}
	if q.AfterID != nil {
		p.from = 0
	}
	p.to = p.from + min(max(q.Limit, 0), math.MaxInt-p.from)
	p.ordered = q.AfterID == nil && q.OrderBy != ByID && v.schema.Column(q.OrderBy).Type == Time
	p.spans = make([]span, 0, len(parts))
	searching := len(searchTokens(q.Search)) > 0
	for i := range parts {
		switch held := v.coverageOf(&parts[i], &q.Filter, searching); held {
		case coversSome:
			open = append(open, i)
			p.add(i, &parts[i], true)
		case coversAll:
			beside += parts[i].Count
			p.add(i, &parts[i], false)
		}
	}
	if beside > 0 && p.from < p.to {
		before, open = p.locate(open)
	}
	p.release()
	return open, before, beside
}

// QueryBeside is Query, beside documents that are not in the view: before of them
// stand before the page and no other reaches into it, and beside of them are hits.
func (v *View) QueryWithOffset(q Query, before, beside int) Result {
	if q.AfterID == nil {
		q.Offset = max(q.Offset-before, 0)
	}
	r := v.Query(q)
	r.Total += beside
	return r
}

func (v *View) coverageOf(s *Summary, f *Filter, searching bool) coverage {
	if s.Count == 0 {
		return coversNone
	}
	if len(s.Times) != v.schema.timeCount() {
		// The schema has grown since: only the documents tell.
		return coversSome
	}
	held := s.coverage(v.schema, f)
	if searching {
		held = min(held, coversSome)
	}
	return held
}

// plan finds out which parts may reach into a page: the places from to to, to not
// included, in the order of all hits.
type plan struct {
	view     *View
	query    *Query
	from, to int
	ordered  bool // the summaries know the order
	spans    []span

	counted bool
	hits    Bits // of the view; nil when every document is one
	total   int
	scratch *Bits
}

// piece is those documents of a part that have a value in the column of the order,
// or those that are null. Values are turned so that what is less comes first.
type span struct {
	part          int
	partial       bool // not all its documents are hits
	null          bool
	first, last   int64
	count         int
	before, reach bool // lies before the page; may reach into it
}

func (p *plan) add(part int, s *Summary, partial bool) {
	whole := span{part: part, partial: partial, count: s.Count, null: true, reach: true}
	if !p.ordered {
		p.spans = append(p.spans, whole)
		return
	}
	if len(s.Times) != p.view.schema.timeCount() {
		return
	}
	r := s.Times[p.view.schema.timeRank(p.query.OrderBy)]
	if r.Nulls < s.Count {
		valued := span{part: part, partial: partial, count: s.Count - r.Nulls, first: r.Min, last: r.Max, reach: true}
		if p.query.Desc {
			valued.first, valued.last = ^r.Max, ^r.Min
		}
		p.spans = append(p.spans, valued)
	}
	if r.Nulls > 0 {
		whole.count = r.Nulls
		p.spans = append(p.spans, whole)
	}
}

// place decides for every piece whether it may reach into the page, adds to open
// the parts that are to be opened for that, and returns how many documents stand
// before the page for certain, which counts when open stays empty.
func (p *plan) locate(open []int) (before int, all []int) {
	p.decide(false)
	if len(open) > 0 {
		// What is to be opened anyway has any number of hits. A part is opened with it
		// only if it may reach into the page whether those are none or all.
		p.decide(true)
	}
	for i := range p.spans {
		if p.spans[i].before {
			before += p.spans[i].count
		}
	}
	return before, p.choose(open)
}

// decide takes away reach from the pieces that lie behind the page or before it
// for certain. full says that all documents of partial pieces are hits, otherwise
// none is.
func (p *plan) decide(full bool) {
	slices.SortFunc(p.spans, compareFirst)
	// What starts later has more before it, so the pieces behind the page are the
	// last ones.
	behind := sort.Search(len(p.spans), func(i int) bool { return p.isBehind(&p.spans[i], full) })
	for i := range p.spans[behind:] {
		p.spans[behind+i].reach = false
	}
	if p.from == 0 {
		return
	}
	slices.SortFunc(p.spans, compareLast)
	// Likewise, those before it are the first ones by their ends.
	reaching := sort.Search(len(p.spans), func(i int) bool { return !p.isBefore(&p.spans[i], full) })
	for i := range p.spans[:reaching] {
		p.spans[i].reach, p.spans[i].before = false, true
	}
}

func compareFirst(a, b span) int { return compareEnds(a.null, a.first, b.null, b.first) }
func compareLast(a, b span) int  { return compareEnds(a.null, a.last, b.null, b.last) }

func compareEnds(aNull bool, a int64, bNull bool, b int64) int {
	switch {
	case aNull && bNull:
		return 0
	case aNull:
		return 1
	case bNull:
		return -1
	}
	return cmp.Compare(a, b)
}

// isBehind says whether so many hits stand before the first document of x, ties not
// counted, that it is behind the page. The view is only asked if the parts do not
// tell.
func (p *plan) isBehind(x *span, full bool) bool {
	n := p.preceding(x, full)
	return n >= p.to || n+p.table().live >= p.to && n+p.inView(x.null, x.first, false) >= p.to
}

// preceding counts the documents of parts that stand before all of x for certain.
func (p *plan) preceding(x *span, full bool) int {
	n := 0
	for i := range p.spans {
		y := &p.spans[i]
		if !y.null && (x.null || y.last < x.first) && (full || !y.partial) {
			n += y.count
		}
	}
	return n
}

// isBefore says whether so few hits stand before the last document of x, ties
// counted, that it is before the page.
func (p *plan) isBefore(x *span, full bool) bool {
	n := 0
	for i := range p.spans {
		y := &p.spans[i]
		if (x.null || !y.null && y.first <= x.last) && (full || !y.partial) {
			n += y.count
		}
	}
	return n <= p.from && (n+p.table().live <= p.from || n+p.inView(x.null, x.last, true) <= p.from)
}

// choose adds to open the parts to open next for the page. Without knowing more
// than their bounds, the first ones that together fill it are needed if no others
// overlap with them; if others do, what is found in the first ones may rule them
// out. A quarter of all that may reach into the page are opened at least, so that
// a few rounds suffice.
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
	slices.SortFunc(reaching, compareFirst)
	place := p.preceding(&reaching[0], false) + p.inView(reaching[0].null, reaching[0].first, false)
	for i, x := range reaching {
		// Nulls tie with one another, so that nothing rules one of them out.
		if x.null || place < p.to || 4*i < len(reaching) {
			open = append(open, x.part)
			place += min(x.count, p.to-place)
		}
	}
	slices.Sort(open)
	return slices.Compact(open)
}

func (p *plan) table() *table { return p.view.table }

// inView counts the hits in the view that stand before a place in the order, or
// also those that may stand on it.
func (p *plan) inView(null bool, end int64, ties bool) int {
	p.count()
	switch {
	case null && ties:
		return p.total
	case !p.ordered:
		return 0
	case null:
		return p.between(math.MinInt64, math.MaxInt64)
	case !ties && end == math.MinInt64:
		return 0
	case !ties:
		end--
	}
	if p.query.Desc {
		return p.between(^end, math.MaxInt64)
	}
	return p.between(math.MinInt64, end)
}

// count finds the hits in the view.
func (p *plan) count() {
	if p.counted {
		return
	}
	p.counted = true
	t := p.table()
	filter := t.predicate(&p.query.Filter)
	if p.total = t.live; filter.op == opAll && len(filter.of) == 0 {
		return
	}
	p.scratch, p.hits = p.view.hits()
	p.total = t.find(&filter, nil, p.hits)
}

func (p *plan) release() {
	if p.scratch != nil {
		p.view.scratch.Put(p.scratch)
	}
}

// between counts the hits in the view whose value in the column of the order lies
// in [lo, hi].
func (p *plan) between(lo, hi int64) int {
	t, col := p.table(), p.query.OrderBy
	if o := t.orderings[col].Load(); o != nil && p.hits == nil {
		return t.rank(o, hi, true) - t.rank(o, lo, false)
	}
	n := 0
	for slot, c := range t.groups {
		if c == nil {
			continue
		}
		rows := c.Live
		if p.hits != nil {
			rows = *(*RowSet)(p.hits[slot*rowWords:])
		}
		c.keepBetween(col, lo, hi, &rows)
		n += rows.Count()
	}
	return n
}

// rank counts the documents of an ordering with a value less than v, or equal to it
// too.
func (t *table) rank(o *ordering, v int64, ties bool) int {
	return sort.Search(len(o.sets[0]), func(i int) bool {
		c, row := t.at(o.sets[0][i])
		value := c.Columns[o.col].Values.At(row)
		return value > v || value == v && !ties
	})
}
