package pattern

import (
	"bytes"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// op is what a condition asks.
type op uint8

const (
	isText     op = iota // equal text
	isPrefix             // begins with the text
	isSuffix             // ends with the text
	isWildcard           // has the pieces, in order
	isNumber             // lies within the bounds
	isLiteral            // is true, false or null, by its kind
	isNot                // none of others holds
	isPresent
	isAbsent
)

// condition is one condition. The fields that its op does not name are zero.
type condition struct {
	op      op
	fold    bool   // of isText, isPrefix and isSuffix: regardless of case
	literal byte   // of isLiteral: 't', 'f' or 'n'
	text    []byte // of isText, isPrefix and isSuffix
	pieces  [][]byte
	low     bound // of isNumber
	high    bound
	others  []condition // of isNot
}

// bound is one end of a range of numbers.
type bound struct {
	given     bool
	inclusive bool
	number    decimal
}

// scalar is a value of a document.
type scalar struct {
	kind byte   // '"', '0', 't', 'f' or 'n'
	text []byte // of a text, without escapes; of a number as it is written
}

func (c *condition) holds(v scalar) bool {
	switch c.op {
	case isPresent:
		return true
	case isAbsent:
		return false
	case isLiteral:
		return v.kind == c.literal
	case isNumber:
		return v.kind == '0' && c.contains(v.text)
	case isNot:
		for i := range c.others {
			if c.others[i].holds(v) {
				return false
			}
		}
		return true
	}
	return v.kind == '"' && c.holdsFor(v.text)
}

// holdsFor is about a condition on text.
func (c *condition) holdsFor(text []byte) bool {
	switch {
	case c.op == isWildcard:
		return matchPieces(text, c.pieces)
	case c.op == isText && c.fold:
		return bytes.EqualFold(text, c.text)
	case c.op == isText:
		return bytes.Equal(text, c.text)
	case c.fold && c.op == isPrefix:
		return foldAlong(text, c.text, utf8.DecodeRune, func(b []byte, n int) []byte { return b[n:] })
	case c.fold:
		return foldAlong(text, c.text, utf8.DecodeLastRune, func(b []byte, n int) []byte { return b[:len(b)-n] })
	case c.op == isPrefix:
		return bytes.HasPrefix(text, c.text)
	}
	return bytes.HasSuffix(text, c.text)
}

// matchPieces reports whether the text is the pieces with any text between
// them. To take the first place for each piece leaves the most room for the
// next, so that no place has to be tried twice.
func matchPieces(text []byte, pieces [][]byte) bool {
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return bytes.Equal(text, first)
	}
	if len(text) < len(first)+len(last) || !bytes.HasPrefix(text, first) || !bytes.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		at := bytes.Index(text, piece)
		if at < 0 {
			return false
		}
		text = text[at+len(piece):]
	}
	return true
}

// foldAlong reports whether the text has all runes of want, regardless of case,
// from the end at which decode reads.
func foldAlong(text, want []byte, decode func([]byte) (rune, int), rest func([]byte, int) []byte) bool {
	for len(want) > 0 {
		wanted, m := decode(want)
		got, n := decode(text)
		if n == 0 || !foldsTo(got, wanted) {
			return false
		}
		want, text = rest(want, m), rest(text, n)
	}
	return true
}

func foldsTo(a, b rune) bool {
	for r := unicode.SimpleFold(a); r != a; r = unicode.SimpleFold(r) {
		if r == b {
			return true
		}
	}
	return a == b
}

func (c *condition) contains(number []byte) bool {
	var digits [2 * MaxNumber]byte
	n := parseDecimal(digits[:0], number)
	if c.low.given {
		if order := n.compare(c.low.number); order < 0 || order == 0 && !c.low.inclusive {
			return false
		}
	}
	if c.high.given {
		if order := n.compare(c.high.number); order > 0 || order == 0 && !c.high.inclusive {
			return false
		}
	}
	return true
}

// kind is that of the values for which the condition can hold, 0 for any.
func (c *condition) kind() byte {
	switch c.op {
	case isText, isPrefix, isSuffix, isWildcard:
		return '"'
	case isNumber:
		return '0'
	case isLiteral:
		if c.literal == 'f' {
			return 't'
		}
		return c.literal
	case isNot, isPresent, isAbsent:
	}
	return 0
}

// list appends the conditions below an object.
func (o *object) list(all []Condition, path []string, at string) []Condition {
	for i := range o.fields {
		f := &o.fields[i]
		below, stands := slices.Concat(path, []string{f.name}), join(at, f.name)
		if f.nested != nil {
			all = f.nested.list(all, below, stands)
		}
		for j := range f.conditions {
			all = append(all, Condition{Path: below, At: stands + index(j), Kind: f.conditions[j].kind()})
		}
	}
	for _, alternatives := range o.groups {
		for i := range alternatives {
			all = alternatives[i].list(all, path, join(at, orName+index(i)))
		}
	}
	return all
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }
