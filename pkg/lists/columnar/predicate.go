package columnar

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/fold"
)

// predicate is a filter made ready for one table: values are looked up once, not
// for every row group.
type predicate struct {
	op       op
	text     bool // opIn: the column is a Text
	col      Col
	lo, hi   int64
	values   []string
	codes    Bits     // opIn on a Keyword
	ordinals []uint32 // opIDs, ascending
	of       []predicate
}

func (t *table) predicate(f *Filter) predicate {
	f.check(t.schema)
	p := predicate{op: f.op, col: f.col, lo: f.lo, hi: f.hi}
	switch f.op {
	case opAll, opAny, opNot:
		if len(f.of) > 0 {
			p.of = make([]predicate, len(f.of))
		}
		for i := range f.of {
			p.of[i] = t.predicate(&f.of[i])
		}
		slices.SortStableFunc(p.of, func(a, b predicate) int { return a.cost() - b.cost() })
	case opIn:
		column := t.schema.Column(f.col)
		p.text = column.Type == Text
		p.values = f.values
		if column.folds() {
			p.values = foldAll(f.values)
		}
		if !p.text {
			p.codes = t.dictionaries[p.col].codes(p.values)
		}
	case opNull:
		if d := t.dictionaries[f.col]; d != nil {
			p.op, p.codes = opIn, NewBits(d.Span())
			p.codes.Add(0)
		}
	case opIDs:
		p.ordinals = t.ordinals(f.ids)
	}
	return p
}

func (c Column) folds() bool { return c.Fold || c.Type == Text }

// foldAll returns values as they are when they are folded already.
func foldAll(values []string) []string {
	for i, v := range values {
		if folded := fold.String(v); folded != v {
			values = slices.Clone(values)
			for j := i; j < len(values); j++ {
				values[j] = fold.String(values[j])
			}
			break
		}
	}
	return values
}

func (t *table) ordinals(ids [][16]byte) []uint32 {
	all := t.ids()
	var found []uint32
	for _, id := range ids {
		for at, _ := t.lookup(0, 1, Key{ID: id}); at < len(all) && t.key(all[at]).ID == id; at++ {
			found = append(found, all[at])
		}
	}
	slices.Sort(found)
	return found
}

// cost orders predicates: what drops many rows for little goes first.
func (p *predicate) cost() int {
	switch p.op {
	case opIDs, opIs:
		return 0
	case opIn:
		if p.text {
			return 2
		}
		return 1
	case opNull:
		return 1
	case opBetween, opVisible:
		return 3
	}
	return 4
}

// narrow keeps the rows of a row group for which the predicate holds.
func (p *predicate) narrow(number int, g *RowGroup, rows *RowSet) {
	switch p.op {
	case opAll:
		for i := range p.of {
			if rows.Empty() {
				return
			}
			p.of[i].narrow(number, g, rows)
		}
	case opAny:
		p.narrowAny(number, g, rows)
	case opNot:
		held := *rows
		p.of[0].narrow(number, g, &held)
		rows.Without(&held)
	case opIn:
		if p.text {
			g.keepText(p.col, p.values, rows)
		} else {
			rows.keepCodes(g.Columns[p.col].Codes, p.codes)
		}
	case opNull:
		g.keepNulls(p.col, rows)
	case opIs:
		g.keepBool(p.col, p.lo == 1, rows)
	case opBetween:
		g.keepBetween(p.col, p.lo, p.hi, rows)
	case opVisible:
		rows.keepWithin(g.Visible, p.lo, p.hi)
	case opIDs:
		p.narrowIDs(number, rows)
	}
}

func (p *predicate) narrowAny(number int, g *RowGroup, rows *RowSet) {
	var found, left RowSet
	for i := range p.of {
		left = *rows
		left.Without(&found)
		p.of[i].narrow(number, g, &left)
		found.Or(&left)
	}
	*rows = found
}

func (p *predicate) narrowIDs(number int, rows *RowSet) {
	var found RowSet
	i, _ := slices.BinarySearch(p.ordinals, ordinal(number, 0))
	for ; i < len(p.ordinals) && int(p.ordinals[i]>>rowShift) == number; i++ {
		found.add(int(p.ordinals[i] & rowMask))
	}
	rows.And(&found)
}
