package pattern

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a pattern.
const (
	MaxBytes      = 4096 // of its text
	MaxLevels     = 12   // of nested objects, itself and those of $or included
	MaxConditions = 100
	MaxStars      = 8  // in one wildcard
	MaxNumber     = 32 // bytes of a number's text; its exponent has at most 4 digits
)

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	root object
}

// object is what must hold for the members of one object: every field, and of
// every group one alternative.
type object struct {
	fields []field
	groups [][]object
}

// field is what must hold for one member.
type field struct {
	name       string
	nested     *object     // nil: the conditions count
	conditions []condition // one of which must hold
}

// Mismatch is the path of the first field, in the order of the pattern, for
// which the document does not match, such as object.items.sku; "" when it does.
// A group of alternatives is called $or.
func (p *Pattern) Mismatch(d *Document) string { return p.root.mismatch(&d.root, "") }

func (o *object) match(n *node) bool {
	for i := range o.fields {
		if f := &o.fields[i]; !f.match(n.member(f.name)) {
			return false
		}
	}
	for _, alternatives := range o.groups {
		if !anyMatches(alternatives, n) {
			return false
		}
	}
	return true
}

func anyMatches(alternatives []object, n *node) bool {
	return slices.ContainsFunc(alternatives, func(o object) bool { return o.match(n) })
}

// match reports whether the member matches; nil when it is not there.
func (f *field) match(n *node) bool {
	if f.nested != nil {
		found, objects := f.matchObjects(n)
		return found || objects == 0 && f.nested.match(nil)
	}
	found, values := f.matchValues(n)
	return found || values == 0 && slices.ContainsFunc(f.conditions, func(c condition) bool { return c.op == isAbsent })
}

// matchObjects reports whether the nested pattern matches the object, or one in
// the array, and how many objects were looked at.
func (f *field) matchObjects(n *node) (found bool, objects int) {
	switch {
	case n == nil:
	case n.kind == '{':
		return f.nested.match(n), 1
	case n.kind == '[':
		return eachBelow(n, f.matchObjects)
	}
	return false, 0
}

// matchValues reports whether a condition holds for the value, or for one in the
// array, and how many values were looked at.
func (f *field) matchValues(n *node) (found bool, values int) {
	switch {
	case n == nil || n.kind == '{':
		return false, 0
	case n.kind == '[':
		return eachBelow(n, f.matchValues)
	}
	for i := range f.conditions {
		if f.conditions[i].holds(n) {
			return true, 1
		}
	}
	return false, 1
}

// eachBelow matches the elements of an array until one does.
func eachBelow(n *node, match func(*node) (bool, int)) (found bool, looked int) {
	for i := range n.below {
		matches, count := match(&n.below[i])
		if looked += count; matches {
			return true, looked
		}
	}
	return false, looked
}

func (o *object) mismatch(n *node, path string) string {
	for i := range o.fields {
		f := &o.fields[i]
		member := n.member(f.name)
		if f.match(member) {
			continue
		}
		path := join(path, f.name)
		switch {
		case f.nested == nil:
			return path
		case member == nil:
		case member.kind == '{':
			return f.nested.mismatch(member, path)
		case member.kind == '[':
			if _, objects := f.matchObjects(member); objects > 0 {
				return path
			}
		}
		return f.nested.mismatch(nil, path)
	}
	for _, alternatives := range o.groups {
		if !anyMatches(alternatives, n) {
			return join(path, orName)
		}
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Condition is one condition of a pattern, for a check of the pattern against
// what it selects.
type Condition struct {
	Path []string // of the field, from the top; without $or
	At   string   // where it stands in the pattern: $or[1].object.total[0]
	// Kind is that of the values for which it can hold: '"' text, '0' numbers,
	// 't' true and false, 'n' null; 0 any.
	Kind jsontext.Kind
}

// Conditions lists all conditions in their order.
func (p *Pattern) Conditions() []Condition { return p.root.list(nil, nil, "") }
