package columnar

import (
	"bytes"
	"cmp"
	"slices"
)

// Gathered is the beginning of an answer that is put together from views of parts of
// a list, one after the other, none of which has to stay in memory: how many hits
// there are, and the first of them in the order of the query. Every document of the
// list is in one part.
type Gathered struct {
	schema *Schema
	query  Query // its Limit is how many hits are kept; its Offset is 0
	total  int
	hits   []gatheredHit // in the order of the query
	cut    bool          // there are hits behind these
	bytes  int
}

// gatheredHit is a hit with its value in the column of the order.
type gatheredHit struct {
	Hit
	null   bool
	number int64
	text   []byte
}

// Gather begins an answer to a query, whatever its page, that keeps so many hits.
func (s *Schema) Gather(q Query, keep int) *Gathered {
	q.Offset, q.Limit = 0, keep
	return &Gathered{schema: s, query: q}
}

// Add adds the hits of a part.
func (g *Gathered) Add(v *View) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	ordinals, total := v.ask(&g.query)
	g.total += total
	added := make([]gatheredHit, len(ordinals))
	for i, o := range ordinals {
		added[i] = v.table.gathered(&g.query, o)
	}
	if g.query.AfterID == nil {
		g.cut = g.cut || len(added) < total
	} else {
		g.cut = g.cut || len(added) >= g.query.Limit // or there is nothing behind them
	}
	g.merge(added)
}

// merge merges hits with those there are, and keeps the first.
func (g *Gathered) merge(added []gatheredHit) {
	merged := make([]gatheredHit, 0, len(g.hits)+len(added))
	rest := g.hits
	for i := range added {
		n, _ := slices.BinarySearchFunc(rest, &added[i], func(h gatheredHit, a *gatheredHit) int { return g.compare(&h, a) })
		merged = append(append(merged, rest[:n]...), added[i])
		rest = rest[n:]
	}
	merged = append(merged, rest...)
	n := g.end(merged, 0, g.query.Limit)
	g.cut = g.cut || n < len(merged)
	g.hits, g.bytes = slices.Clip(merged[:n]), 0
	clear(merged[n:])
	for i := range g.hits {
		g.bytes += gatheredHitBytes + len(g.hits[i].text)
	}
}

// gatheredHitBytes is what a hit takes in memory, its text apart.
const gatheredHitBytes = 88

// GatheredMemory is what gathering so many hits takes, while those of a part are
// merged with those of others.
func GatheredMemory(hits int) int64 { return 3 * gatheredHitBytes * int64(hits) }

// end is where the page of hits from a position on ends: hits of one ID are not
// parted in a walk.
func (g *Gathered) end(hits []gatheredHit, from, limit int) int {
	n := from + min(limit, len(hits)-from)
	for g.query.AfterID != nil && n > from && n < len(hits) && hits[n].ID == hits[n-1].ID {
		n++
	}
	return n
}

// compare compares hits by the order of the query.
func (g *Gathered) compare(a, b *gatheredHit) int {
	if a.null != b.null {
		if a.null {
			return 1
		}
		return -1
	}
	d := cmp.Or(cmp.Compare(a.number, b.number), bytes.Compare(a.text, b.text), Key{a.ID, a.Sub}.Compare(Key{b.ID, b.Sub}))
	if g.query.Desc && g.query.AfterID == nil {
		return -d
	}
	return d
}

// gathered is the hit of a row.
func (t *table) gathered(q *Query, o uint32) gatheredHit {
	h := gatheredHit{Hit: t.resolve([]uint32{o})[0]}
	if q.AfterID != nil || q.OrderBy == ByID {
		return h
	}
	g, row := t.at(o)
	switch h.null = g.null(q.OrderBy, row); {
	case h.null:
	case t.isText(q.OrderBy):
		text, _ := g.text(q.OrderBy, row)
		h.text = bytes.Clone(text)
	default:
		h.number = g.Columns[q.OrderBy].Values.At(row)
	}
	return h
}

// Clone returns a copy that can go on by itself.
func (g *Gathered) Clone() *Gathered {
	clone := *g
	return &clone
}

// Bytes is about how much memory it takes.
func (g *Gathered) Bytes() int64 { return int64(g.bytes) }

// Result returns the page that a query asks for; false when too few hits were kept.
// The query differs from that which was gathered in its page only.
func (g *Gathered) Result(q Query) (Result, bool) {
	from := max(q.Offset, 0)
	if q.AfterID != nil {
		if bytes.Compare(q.AfterID[:], g.query.AfterID[:]) < 0 {
			return Result{}, false
		}
		from, _ = slices.BinarySearchFunc(g.hits, *q.AfterID, func(h gatheredHit, id [16]byte) int {
			return cmp.Or(bytes.Compare(h.ID[:], id[:]), -1)
		})
	}
	from = min(from, len(g.hits))
	limit := max(q.Limit, 0)
	if past := q.AfterID == nil && q.Offset >= g.total; g.cut && !past && limit > len(g.hits)-from {
		return Result{}, false
	}
	end := g.end(g.hits, from, limit)
	r := Result{Total: g.total, Hits: make([]Hit, 0, end-from)}
	for i := range g.hits[from:end] {
		r.Hits = append(r.Hits, g.hits[from+i].Hit)
	}
	return r, true
}
