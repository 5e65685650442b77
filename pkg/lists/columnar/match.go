package columnar

import (
	"bytes"
	"slices"

	"github.com/commerce-integration/service/pkg/base/fold"
)

// Match says whether a view that held only doc would count it as a hit of q: its
// Filter holds for the document and each token of Search occurs in it. A deleted
// document is never one. It panics as View.Query does.
func Match(s *Schema, q Query, doc Document) bool {
	if doc.Deleted || !s.holds(&q.Filter, &doc) {
		return false
	}
	for _, token := range searchTokens(q.Search) {
		if !s.occurs(token, &doc) {
			return false
		}
	}
	return true
}

func (s *Schema) holds(f *Filter, d *Document) bool {
	f.check(s)
	switch f.op {
	case opAll:
		for i := range f.of {
			if !s.holds(&f.of[i], d) {
				return false
			}
		}
		return true
	case opAny:
		for i := range f.of {
			if s.holds(&f.of[i], d) {
				return true
			}
		}
		return false
	case opNot:
		return !s.holds(&f.of[0], d)
	case opVisible:
		return f.lo <= d.Visible && d.Visible <= f.hi
	case opIDs:
		return slices.Contains(f.ids, d.ID)
	}
	c, ok := d.cell(f.col)
	switch f.op {
	case opNull:
		return !ok
	case opIs:
		return ok && (c.kind == kindTrue) == (f.lo == 1)
	case opBetween:
		return ok && f.lo <= c.number && c.number <= f.hi
	}
	return ok && s.isAmong(c, f.values)
}

// isAmong says whether one of a Keyword's values, or the first of a Text, is one
// of values.
func (s *Schema) isAmong(c cell, values []string) bool {
	column := s.Column(c.col)
	for v := range c.strings() {
		for _, wanted := range values {
			if column.folds() {
				wanted = fold.String(wanted)
			}
			if string(v) == wanted {
				return true
			}
		}
		if column.Type == Text {
			break
		}
	}
	return false
}

func (s *Schema) occurs(token []byte, d *Document) bool {
	for _, col := range s.text[SearchText] {
		c, _ := d.cell(col)
		for v := range c.strings() {
			if bytes.Contains(v, token) {
				return true
			}
		}
	}
	return false
}
