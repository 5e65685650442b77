package pattern

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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
	fold    bool          // of isText, isPrefix and isSuffix: regardless of case
	literal jsontext.Kind // of isLiteral: 't', 'f' or 'n'
	text    string        // of isText, isPrefix and isSuffix
	pieces  []string
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

func (c *condition) holds(v *node) bool {
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
func (c *condition) holdsFor(text string) bool {
	switch {
	case c.op == isWildcard:
		return matchPieces(text, c.pieces)
	case c.op == isText && c.fold:
		return strings.EqualFold(text, c.text)
	case c.op == isText:
		return text == c.text
	case c.fold:
		letters, n := []rune(text), utf8.RuneCountInString(c.text)
		if n > len(letters) {
			return false
		}
		if c.op == isSuffix {
			letters = letters[len(letters)-n:]
		}
		return strings.EqualFold(string(letters[:n]), c.text)
	case c.op == isPrefix:
		return strings.HasPrefix(text, c.text)
	}
	return strings.HasSuffix(text, c.text)
}

// matchPieces reports whether the text is the pieces with any text between
// them. To take the first place for each piece leaves the most room for the
// next, so that no place has to be tried twice.
func matchPieces(text string, pieces []string) bool {
	head, tail := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return text == head
	}
	if len(text) < len(head)+len(tail) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
		return false
	}
	text = text[len(head) : len(text)-len(tail)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		at := strings.Index(text, piece)
		if at < 0 {
			return false
		}
		text = text[at+len(piece):]
	}
	return true
}

func (c *condition) contains(number string) bool {
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
func (c *condition) kind() jsontext.Kind {
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
