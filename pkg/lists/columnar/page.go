package columnar

import (
	"math/bits"
	"slices"
)

// page cuts a page out of the total hits; hits is nil when every document is one.
func (t *table) page(q *Query, hits Bits, total int) []uint32 {
	limit := max(q.Limit, 0)
	if q.AfterID != nil {
		return t.after(*q.AfterID, hits, limit)
	}
	offset := max(q.Offset, 0)
	if offset >= total || limit == 0 {
		return nil
	}
	limit = min(limit, total-offset)
	if hits == nil {
		return t.ordering(q.OrderBy).slice(q.Desc, offset, limit)
	}
	// A few hits do not make it worth ordering all documents for the first time.
	budget := total * bits.Len(uint(total)) * walkStepsPerSortStep
	if budget > t.live || t.orderings[q.OrderBy].Load() != nil {
		o := t.ordering(q.OrderBy)
		if page, ok := o.walk(q.Desc, hits, offset, total-offset-limit, limit, budget); ok {
			return page
		}
	}
	return t.newOrdering(q.OrderBy, hits, total).slice(q.Desc, offset, limit)
}

// walkStepsPerSortStep is how many steps of a walk take as long as one of sorting the hits.
// How far a page is to walk cannot be known: hits may lie close together at one
// end, or far from both. So a walk gives up after as many steps as would have
// sorted the hits, and they are sorted.
const walkStepsPerSortStep = 8

func (t *table) resolve(ordinals []uint32) []Hit {
	hits := make([]Hit, len(ordinals))
	for i, o := range ordinals {
		g, row := t.at(o)
		k := g.Keys[row]
		hits[i] = Hit{ID: k.ID, Sub: k.Sub, Revision: g.Revision[row], Visible: g.Visible[row]}
	}
	return hits
}

// after returns the first hits with a greater id, and those that share the id of
// the last.
func (t *table) after(id [16]byte, hits Bits, limit int) []uint32 {
	ids := t.ids()
	at, _ := t.lookup(0, 1, Key{ID: id, Sub: 255})
	var page []uint32
	for ; at < len(ids) && limit > 0; at++ {
		o := ids[at]
		switch k := t.key(o); {
		case k.ID == id || hits != nil && !hits.Has(int(o)):
		case len(page) < limit || k.ID == t.key(page[len(page)-1]).ID:
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
		at, set := offset+i, o.sets[0]
		if at >= len(set) {
			at, set = at-len(set), o.sets[1]
		}
		if desc {
			at = len(set) - 1 - at
		}
		page[i] = set[at]
	}
	return page
}

// walk returns limit hits of an ordering, with before hits ahead of them and
// behind after them. It starts from the end that is nearer, and gives up after so
// many steps.
func (o *ordering) walk(desc bool, hits Bits, before, behind, limit, steps int) ([]uint32, bool) {
	w := walker{hits: hits, page: make([]uint32, 0, limit), skip: before, steps: steps}
	if before <= behind {
		done := w.pass(o.sets[0], desc) || w.pass(o.sets[1], desc)
		return w.page, done
	}
	w.skip = behind
	done := w.pass(o.sets[1], !desc) || w.pass(o.sets[0], !desc)
	slices.Reverse(w.page)
	return w.page, done
}

type walker struct {
	hits  Bits
	page  []uint32 // as many as it has room for
	skip  int      // hits to pass over first
	steps int      // left to go
}

// pass goes through a set, from its end when backward, and says whether the page
// is full.
func (w *walker) pass(set []uint32, backward bool) bool {
	for i := 0; i < len(set) && w.steps > 0; i++ {
		o := set[i]
		if backward {
			o = set[len(set)-1-i]
		}
		w.steps--
		switch {
		case !w.hits.Has(int(o)):
		case w.skip > 0:
			w.skip--
		default:
			if w.page = append(w.page, o); len(w.page) == cap(w.page) {
				return true
			}
		}
	}
	return false
}
