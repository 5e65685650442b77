package columnar_test

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// The schema of the property tests has every type with every flag.
var everything = columnar.MustSchema("everything",
	columnar.Column{Name: "state", Type: columnar.Keyword},
	columnar.Column{Name: "sites", Type: columnar.Keyword, Fold: true},
	columnar.Column{Name: "active", Type: columnar.Bool},
	columnar.Column{Name: "price", Type: columnar.Number, Sort: true},
	columnar.Column{Name: "placed", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "tags", Type: columnar.Text, Search: true},
	columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
	columnar.Column{Name: "sku", Type: columnar.Text, Search: true, Sort: true, Match: true},
	columnar.Column{Name: "ref", Type: columnar.Text, Match: true},
	columnar.Column{Name: "lastName", Type: columnar.Text, Sort: true},
	columnar.Column{Name: "keys", Type: columnar.Text, Match: true, Each: true},
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
	keys     = everything.Col("keys")
)

var (
	keywordCols = []columnar.Col{state, sites}
	numberCols  = []columnar.Col{price, placed}
	textCols    = []columnar.Col{tags, name, sku, ref, lastName, keys}
	searchCols  = []columnar.Col{tags, name, sku}
	matchCols   = []columnar.Col{sku, ref, keys}
	sortCols    = []columnar.Col{columnar.ByID, price, placed, name, sku, lastName}
)

// record is a document as the slow model keeps it.
type record struct {
	id                [16]byte
	sub               uint8
	revision, visible int64
	deleted           bool
	keywords          map[columnar.Col][]string
	bools             map[columnar.Col]bool
	numbers           map[columnar.Col]int64
	texts             map[columnar.Col][]string
}

func (r record) document() columnar.Document {
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

func (m model) query(q columnar.Query, holds func(record) bool) columnar.Result {
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

func (m model) after(q columnar.Query, found []record) columnar.Result {
	slices.SortFunc(found, func(a, b record) int { return compareRecords(a, b, columnar.ByID, false) })
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

func result(total int, page []record) columnar.Result {
	hits := []columnar.Hit{}
	for _, r := range page {
		hits = append(hits, columnar.Hit{ID: r.id, Sub: r.sub, Revision: r.revision, Visible: r.visible})
	}
	return columnar.Result{Total: total, Hits: hits}
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
func compareRecords(a, b record, col columnar.Col, desc bool) int {
	direction := 1
	if desc {
		direction = -1
	}
	if col != columnar.ByID {
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
func (r record) sortValue(col columnar.Col) ([]int64, bool) {
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
