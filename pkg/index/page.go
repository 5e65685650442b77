package index

import (
	"math/bits"
	"slices"
)

// page cuts a page out of the total hits; hits is nil when every document is one.
func (t *table) page(q *Query, hits []uint64, total int) Result {
	limit := max(q.Limit, 0)
	if q.AfterID != nil {
		return Result{Total: total, Hits: t.resolve(t.after(*q.AfterID, hits, limit))}
	}
	offset := max(q.Offset, 0)
	if offset >= total || limit == 0 {
		return Result{Total: total, Hits: []Hit{}}
	}
	limit = min(limit, total-offset)
	o := t.ordering(q.OrderBy)
	var ordinals []uint32
	switch {
	case hits == nil:
		ordinals = o.slice(q.Desc, offset, limit)
	case t.gatherIsCheaper(total, offset, limit):
		ordinals = t.gather(q.OrderBy, hits, total).slice(q.Desc, offset, limit)
	default:
		ordinals = o.walk(q.Desc, hits, offset, total-offset-limit, limit)
	}
	return Result{Total: total, Hits: t.resolve(ordinals)}
}

func (t *table) resolve(ordinals []uint32) []Hit {
	hits := make([]Hit, len(ordinals))
	for i, o := range ordinals {
		c, row := t.chunk(o)
		k := c.key(row)
		hits[i] = Hit{ID: k.id, Sub: k.sub, Revision: c.revision.at(row), Visible: c.visible.at(row)}
	}
	return hits
}

func isHit(hits []uint64, o uint32) bool { return hits[o>>6]>>(o&63)&1 != 0 }

// after returns the first hits with a greater id, and those that share the id of
// the last.
func (t *table) after(id [16]byte, hits []uint64, limit int) []uint32 {
	ids := t.orderings[ByID].Load().sets[0]
	place, _ := t.lookup(0, key{id: id, sub: 255})
	var page []uint32
	for ; place < len(ids) && limit > 0; place++ {
		o := ids[place]
		switch k := t.key(o); {
		case k.id == id || hits != nil && !isHit(hits, o):
		case len(page) < limit || k.id == t.key(page[len(page)-1]).id:
			page = append(page, o)
		default:
			return page
		}
	}
	return page
}

// slice returns the ordinals of a page when all documents are hits.
func (o *ordering) slice(desc bool, offset, limit int) []uint32 {
	page := make([]uint32, limit)
	for i := range page {
		place, set := offset+i, o.sets[0]
		if place >= len(set) {
			place, set = place-len(set), o.sets[1]
		}
		if desc {
			place = len(set) - 1 - place
		}
		page[i] = set[place]
	}
	return page
}

// walk returns limit hits of an ordering, with before hits ahead of them and
// behind after them. It starts from the end that is nearer.
func (o *ordering) walk(desc bool, hits []uint64, before, behind, limit int) []uint32 {
	page := make([]uint32, 0, limit)
	if before <= behind {
		page, before = collect(page, o.sets[0], desc, hits, before)
		page, _ = collect(page, o.sets[1], desc, hits, before)
		return page
	}
	page, behind = collect(page, o.sets[1], !desc, hits, behind)
	page, _ = collect(page, o.sets[0], !desc, hits, behind)
	slices.Reverse(page)
	return page
}

// collect passes over skip hits of a set and appends those after them while page
// has room. It returns how many are left to pass over.
func collect(page, set []uint32, backward bool, hits []uint64, skip int) ([]uint32, int) {
	for i := 0; i < len(set) && len(page) < cap(page); {
		part := set[i:min(i+64, len(set))]
		if backward {
			part = set[max(len(set)-i-64, 0) : len(set)-i]
		}
		i += len(part)
		n := 0
		for _, o := range part {
			n += int(hits[o>>6] >> (o & 63) & 1)
		}
		if n <= skip {
			skip -= n
			continue
		}
		for j := range part {
			o := part[j]
			if backward {
				o = part[len(part)-1-j]
			}
			if !isHit(hits, o) {
				continue
			}
			if skip > 0 {
				skip--
			} else if len(page) < cap(page) {
				page = append(page, o)
			}
		}
	}
	return page, skip
}

// gatherIsCheaper compares a walk along the ordering, whose length depends on how
// thin the hits lie, with sorting the hits alone.
func (t *table) gatherIsCheaper(total, offset, limit int) bool {
	steps := t.live / total * min(offset+limit, total-offset)
	return total*bits.Len(uint(total))*16 < steps
}

// gather orders the hits.
func (t *table) gather(col Col, hits []uint64, total int) *ordering {
	o := &ordering{col: col}
	o.sets[0] = make([]uint32, 0, total)
	for w, word := range hits {
		for ; word != 0; word &= word - 1 {
			d := uint32(w<<6 + bits.TrailingZeros64(word))
			h := t.half(col, d)
			o.sets[h] = append(o.sets[h], d)
		}
	}
	for h := range o.sets {
		o.sets[h] = t.sorted(col, h, o.sets[h])
	}
	return o
}
