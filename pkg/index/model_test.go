package index_test

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/fold"
	"github.com/commerce-integration/service/pkg/index"
)

// The schema of the property tests has every type with every flag.
var everything = index.MustSchema("everything",
	index.Column{Name: "state", Type: index.Keyword},
	index.Column{Name: "sites", Type: index.Keyword, Fold: true},
	index.Column{Name: "active", Type: index.Bool},
	index.Column{Name: "price", Type: index.Number, Sort: true},
	index.Column{Name: "placed", Type: index.Time, Sort: true},
	index.Column{Name: "tags", Type: index.Text, Search: true},
	index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
	index.Column{Name: "sku", Type: index.Text, Search: true, Sort: true, Match: true},
	index.Column{Name: "ref", Type: index.Text, Match: true},
	index.Column{Name: "lastName", Type: index.Text, Sort: true},
)

var (
	state    = everything.Col("state")
	sites    = everything.Col("sites")
	active   = everything.Col("active")
	price    = everything.Col("price")
	placed   = everything.Col("placed")
	tags     = everything.Col("tags")
	name     = everything.Col("name")
	sku      = everything.Col("sku")
	ref      = everything.Col("ref")
	lastName = everything.Col("lastName")
)

var (
	keywordCols = []index.Col{state, sites}
	numberCols  = []index.Col{price, placed}
	textCols    = []index.Col{tags, name, sku, ref, lastName}
	searchCols  = []index.Col{tags, name, sku}
	matchCols   = []index.Col{sku, ref}
	sortCols    = []index.Col{index.ByID, price, placed, name, sku, lastName}
)

// record is a document as the slow model keeps it.
type record struct {
	id                [16]byte
	sub               uint8
	revision, visible int64
	deleted           bool
	keywords          map[index.Col][]string
	bools             map[index.Col]bool
	numbers           map[index.Col]int64
	texts             map[index.Col][]string
}

func (r record) document() index.Document {
	if r.deleted {
		return everything.Tombstone(r.id, r.sub, r.revision, r.visible)
	}
	b := everything.Build(r.id, r.sub)
	for c, v := range r.keywords {
		b.Keyword(c, v...)
	}
	for c, v := range r.bools {
		b.Bool(c, v)
	}
	for c, v := range r.numbers {
		if c == placed {
			b.Time(c, v)
		} else {
			b.Number(c, v)
		}
	}
	// Map order must not matter, but for MaxText, which these never reach.
	for c, v := range r.texts {
		b.Text(c, v...)
	}
	return b.Document(r.revision, r.visible)
}

type modelKey struct {
	id  [16]byte
	sub uint8
}

// model is what a view should be, slowly.
type model map[modelKey]record

func (m model) apply(batch []record) {
	for _, r := range batch {
		k := modelKey{r.id, r.sub}
		old, ok := m[k]
		switch {
		case !ok || r.revision > old.revision || r.revision == old.revision && r.deleted:
			if ok && r.revision == old.revision {
				r.visible = max(r.visible, old.visible)
			}
			m[k] = r
		case r.revision == old.revision:
			old.visible = max(r.visible, old.visible)
			m[k] = old
		}
	}
}

func (m model) query(q index.Query, holds func(record) bool) index.Result {
	tokens := slices.DeleteFunc(slices.Clone(q.Search), func(s string) bool { return s == "" })
	found := []record{}
	for _, r := range m {
		if !r.deleted && holds(r) && r.contains(tokens) {
			found = append(found, r)
		}
	}
	if q.AfterID != nil {
		return m.after(q, found)
	}
	slices.SortFunc(found, func(a, b record) int { return compareRecords(a, b, q.OrderBy, q.Desc) })
	lo := min(max(q.Offset, 0), len(found))
	hi := lo + min(max(q.Limit, 0), len(found)-lo)
	return result(len(found), found[lo:hi])
}

func (m model) after(q index.Query, found []record) index.Result {
	slices.SortFunc(found, func(a, b record) int { return compareRecords(a, b, index.ByID, false) })
	total, limit := len(found), max(q.Limit, 0)
	for len(found) > 0 && bytes.Compare(found[0].id[:], q.AfterID[:]) <= 0 {
		found = found[1:]
	}
	n := min(limit, len(found))
	for n > 0 && n < len(found) && found[n].id == found[n-1].id {
		n++
	}
	return result(total, found[:n])
}

func result(total int, page []record) index.Result {
	hits := []index.Hit{}
	for _, r := range page {
		hits = append(hits, index.Hit{ID: r.id, Sub: r.sub, Revision: r.revision, Visible: r.visible})
	}
	return index.Result{Total: total, Hits: hits}
}

func (r record) contains(tokens []string) bool {
	for _, token := range tokens {
		found := false
		for _, c := range searchCols {
			for _, v := range r.texts[c] {
				found = found || strings.Contains(fold.String(v), token)
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// compareRecords is the order of a list: values, nulls last in both directions,
// then ids in the direction of the order.
func compareRecords(a, b record, col index.Col, desc bool) int {
	direction := 1
	if desc {
		direction = -1
	}
	if col != index.ByID {
		av, aok := a.sortValue(col)
		bv, bok := b.sortValue(col)
		switch {
		case aok && !bok:
			return -1
		case bok && !aok:
			return 1
		case aok:
			if c := slices.Compare(av, bv); c != 0 {
				return c * direction
			}
		}
	}
	if c := bytes.Compare(a.id[:], b.id[:]); c != 0 {
		return c * direction
	}
	return cmp.Compare(a.sub, b.sub) * direction
}

// sortValue is a value as a list of numbers: the number itself, or code points.
func (r record) sortValue(col index.Col) ([]int64, bool) {
	if v, ok := r.numbers[col]; ok {
		return []int64{v}, true
	}
	values := r.texts[col]
	if len(values) == 0 {
		return nil, false
	}
	points := []int64{}
	for _, p := range fold.String(values[0]) {
		points = append(points, int64(p))
	}
	return points, true
}
