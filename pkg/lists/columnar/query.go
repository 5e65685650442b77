package columnar

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/fold"
)

// Query asks a view for a page of the documents that Filter and Search hold for.
type Query struct {
	Filter Filter
	// Search are tokens, as fold.Tokens makes them; each must occur in at least one
	// searched value of a document. Empty tokens are ignored.
	Search []string
	// OrderBy is a column with Sort, or ByID. Documents without a value come last in
	// both directions. What is equal is ordered by ID and then Sub, in the direction
	// of the order.
	OrderBy Col
	Desc    bool
	// Offset and Limit cut the page out of the order. Less than nothing is nothing;
	// past the end the page is empty.
	Offset, Limit int
	// AfterID asks instead for the documents with a greater ID, in ascending order of
	// ids; OrderBy, Desc and Offset do not count then. So that a walk from page to page
	// misses nothing, documents of one ID are never parted: the page exceeds Limit by
	// those that share the last ID.
	AfterID *[16]byte
	// Fields is the greatest number of a field of the organization that Filter asks for:
	// documents that were made before it was declared lack it. A view does not look at it.
	Fields int
}

// Result is a page.
type Result struct {
	// Total counts all documents that Filter and Search hold for.
	Total int
	Hits  []Hit
}

// Hit is one document of a page.
type Hit struct {
	ID       [16]byte
	Sub      uint8
	Revision int64
	Visible  int64
}

// Query answers q. It panics when q asks of a column what the schema does not
// declare, and when it needs text, which the view does not keep.
func (v *View) Query(q Query) Result {
	v.mu.RLock()
	defer v.mu.RUnlock()
	page, total := v.ask(&q)
	return Result{Total: total, Hits: v.table.resolve(page)}
}

// Match says whether a view that held only doc would count it as a hit of q: its
// Filter holds for the document and each token of Search occurs in it. A deleted
// document is never one. It panics as View.Query does.
func Match(s *Schema, q Query, doc Document) bool {
	v := NewView(s)
	v.Apply([]Document{doc})
	return v.Query(Query{Filter: q.Filter, Search: q.Search}).Total == 1
}

// ask returns the rows of the page and how many hits there are. Its caller holds mu.
func (v *View) ask(q *Query) (page []uint32, total int) {
	v.check(q)
	tokens := searchTokens(q.Search)
	t := v.table
	p := t.predicate(&q.Filter)
	if p.op == opAll && len(p.of) == 0 && len(tokens) == 0 {
		return t.page(q, nil, t.live), t.live
	}
	scratch, hits := v.hits()
	defer v.scratch.Put(scratch)
	total = t.find(&p, tokens, hits)
	return t.page(q, hits, total), total
}

// check panics as Query does, apart from what predicate finds.
func (v *View) check(q *Query) {
	if q.OrderBy != ByID {
		v.schema.want(q.OrderBy, "OrderBy", func(c Column) bool { return c.Sort })
	}
	if !v.table.text && v.schema.NeedsText(q) {
		panic("index: Query: a view of schema " + v.schema.name + " keeps no text")
	}
}

// hits returns room for a bit for each ordinal, and the scratch to put back to its
// pool afterwards.
func (v *View) hits() (scratch *Bits, hits Bits) {
	scratch = v.scratch.Get().(*Bits) //nolint:forcetypeassert // the pool holds nothing else
	n := len(v.table.groups) * rowWords
	*scratch = slices.Grow((*scratch)[:0], n)[:n]
	return scratch, *scratch
}

// searchTokens drops empty tokens and puts the longest first: it is likely to be the
// rarest.
func searchTokens(search []string) [][]byte {
	var tokens [][]byte
	for _, s := range search {
		if s = fold.String(s); s != "" {
			tokens = append(tokens, []byte(s))
		}
	}
	slices.SortStableFunc(tokens, func(a, b []byte) int { return len(b) - len(a) })
	return tokens
}

// find sets the bits of the documents that match and counts them.
func (t *table) find(p *predicate, tokens [][]byte, hits Bits) int {
	total := 0
	for number, g := range t.groups {
		rows := (*RowSet)(hits[number*rowWords:])
		if g == nil {
			*rows = RowSet{}
			continue
		}
		*rows = g.Live
		p.narrow(number, g, rows)
		if len(tokens) > 0 && !rows.Empty() {
			g.search(tokens, number != t.tail, rows)
		}
		total += rows.Count()
	}
	return total
}
