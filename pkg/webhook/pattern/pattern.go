package pattern

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

// Match reports whether the pattern matches the document.
func (p *Pattern) Match(d *Document) bool { return p.root.match(d, 0) }

// Mismatch is the path of the first field, in the order of the pattern, for
// which the document does not match, such as object.items.sku; "" when it does.
// A group of alternatives is called $or.
func (p *Pattern) Mismatch(d *Document) string { return p.root.mismatch(d, 0, "") }

func (o *object) match(d *Document, at int32) bool {
	for i := range o.fields {
		if f := &o.fields[i]; !f.match(d, d.member(at, f.name)) {
			return false
		}
	}
	for _, alternatives := range o.groups {
		if !anyMatches(alternatives, d, at) {
			return false
		}
	}
	return true
}

func anyMatches(alternatives []object, d *Document, at int32) bool {
	for i := range alternatives {
		if alternatives[i].match(d, at) {
			return true
		}
	}
	return false
}

// match reports whether the member matches; absent when it is not there.
func (f *field) match(d *Document, at int32) bool {
	if f.nested != nil {
		found, objects := f.matchObjects(d, at)
		return found || objects == 0 && f.nested.match(d, absent)
	}
	found, values := f.matchValues(d, at)
	return found || values == 0 && f.allowsAbsence()
}

// matchObjects tells whether the nested pattern matches the object, or one in
// the array, and how many objects were looked at.
func (f *field) matchObjects(d *Document, at int32) (found bool, objects int) {
	switch d.kind(at) {
	case '{':
		return f.nested.match(d, at), 1
	case '[':
		for e := d.first(at); e != absent; e = d.next(at, e) {
			matches, n := f.matchObjects(d, e)
			if objects += n; matches {
				return true, objects
			}
		}
	}
	return false, objects
}

// matchValues tells whether a condition holds for the value, or for one in the
// array, and how many values were looked at.
func (f *field) matchValues(d *Document, at int32) (found bool, values int) {
	switch d.kind(at) {
	case 0, '{':
		return false, 0
	case '[':
		for e := d.first(at); e != absent; e = d.next(at, e) {
			matches, n := f.matchValues(d, e)
			if values += n; matches {
				return true, values
			}
		}
		return false, values
	}
	v := d.scalar(at)
	for i := range f.conditions {
		if f.conditions[i].holds(v) {
			return true, 1
		}
	}
	return false, 1
}

func (f *field) allowsAbsence() bool {
	for i := range f.conditions {
		if f.conditions[i].op == isAbsent {
			return true
		}
	}
	return false
}

func (o *object) mismatch(d *Document, at int32, path string) string {
	for i := range o.fields {
		f := &o.fields[i]
		member := d.member(at, f.name)
		if f.match(d, member) {
			continue
		}
		path := join(path, f.name)
		switch kind := d.kind(member); {
		case f.nested == nil:
			return path
		case kind == '{':
			return f.nested.mismatch(d, member, path)
		case kind == '[':
			if _, objects := f.matchObjects(d, member); objects > 0 {
				return path
			}
		}
		return f.nested.mismatch(d, absent, path)
	}
	for _, alternatives := range o.groups {
		if !anyMatches(alternatives, d, at) {
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
	Path []string // of the field, from the top; $or is no part of it
	At   string   // where it stands in the pattern: $or[1].object.total[0]
	// Kind is that of the values for which it can hold: '"' text, '0' numbers,
	// 't' true and false, 'n' null; 0 any.
	Kind byte
}

// Conditions lists all conditions in their order.
func (p *Pattern) Conditions() []Condition { return p.root.list(nil, nil, "") }
