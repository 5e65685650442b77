package pattern

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// orName names a group of alternatives.
const orName = "$or"

// Error names the fault in a pattern, and its place.
type Error struct {
	At     string // the path from the top, such as object.total[0]; "" is the whole
	Reason string // goes on after the path: "must be …"
}

func (e *Error) Error() string {
	if e.At == "" {
		return "the pattern " + e.Reason
	}
	return e.At + " " + e.Reason
}

// Compile reads a pattern. An error is an [Error].
func Compile(text []byte) (*Pattern, error) {
	var c compiler
	if len(text) > MaxBytes {
		c.refuse("", "must have at most %d bytes", MaxBytes)
		return nil, c.err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text)) // refuses repeated names
	root, err := read(dec)
	if err != nil {
		c.refuse("", "must be valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
		return nil, c.err
	}
	p := &Pattern{c.object(&root, "", 1)}
	if _, err := dec.ReadToken(); err == nil {
		c.refuse("", "must be one JSON object")
	}
	if c.err != nil {
		return nil, c.err
	}
	return p, nil
}

// compiler compiles the nodes of a pattern. It goes on after a mistake, of
// which it keeps the first.
type compiler struct {
	conditions int
	err        *Error
}

func (c *compiler) refuse(at, format string, args ...any) {
	if c.err == nil {
		c.err = &Error{At: at, Reason: fmt.Sprintf(format, args...)}
	}
}

// count counts a condition.
func (c *compiler) count(at string) {
	if c.conditions++; c.conditions > MaxConditions {
		c.refuse(at, "must leave the pattern with at most %d conditions", MaxConditions)
	}
}

// object compiles an object of the pattern at a level, from 1.
func (c *compiler) object(n *node, at string, level int) (o object) {
	switch {
	case level > MaxLevels:
		c.refuse(at, "must be at most %d levels deep", MaxLevels)
		return o
	case n.kind != '{':
		c.refuse(at, "must be an object")
		return o
	case len(n.below) == 0:
		c.refuse(at, "must not be empty")
	}
	for i := range n.below {
		m := &n.below[i]
		switch m.name {
		case "":
			c.refuse(at, "must name its fields")
		case orName:
			o.groups = append(o.groups, c.group(m, join(at, orName), level))
		default:
			o.fields = append(o.fields, c.field(m, join(at, m.name), level))
		}
	}
	return o
}

// group compiles the alternatives of a $or.
func (c *compiler) group(n *node, at string, level int) (alternatives []object) {
	if n.kind == '[' {
		for i := range n.below {
			alternatives = append(alternatives, c.object(&n.below[i], at+index(i), level+1))
		}
	}
	if len(alternatives) < 2 {
		c.refuse(at, "must be an array of at least two patterns")
	}
	return alternatives
}

func (c *compiler) field(n *node, at string, level int) field {
	f := field{name: n.name}
	switch {
	case n.kind == '{':
		nested := c.object(n, at, level+1)
		f.nested = &nested
		return f
	case n.kind != '[':
		c.refuse(at, "must be an array of conditions, or an object of fields")
	case len(n.below) == 0:
		c.refuse(at, "must have a condition")
	}
	for i := range n.below {
		c.count(at)
		f.conditions = append(f.conditions, c.condition(&n.below[i], at+index(i)))
	}
	return f
}

// condition compiles a value, or an object with one operator.
func (c *compiler) condition(n *node, at string) (one condition) {
	switch n.kind {
	case '"':
		return condition{op: isText, text: n.text}
	case '0':
		return equals(c.number(n, at))
	case 't', 'f', 'n':
		return condition{op: isLiteral, literal: n.kind}
	case '{':
		for i := range n.below {
			m := &n.below[i]
			one = c.operator(m, join(at, m.name))
		}
		if len(n.below) != 1 {
			c.refuse(at, "must have exactly one operator")
		}
		return one
	}
	c.refuse(at, "must be a text, a number, true, false, null or an object with an operator")
	return one
}

func equals(number decimal) condition {
	b := bound{given: true, inclusive: true, number: number}
	return condition{op: isNumber, low: b, high: b}
}

func (c *compiler) text(n *node, at string) string {
	if n.kind != '"' {
		c.refuse(at, "must be a text")
	}
	return n.text
}

func (c *compiler) number(n *node, at string) decimal {
	if n.kind != '0' {
		c.refuse(at, "must be a number")
		return decimal{}
	}
	if exponent := strings.IndexAny(n.text, "eE"); len(n.text) > MaxNumber || exponent >= 0 && len(strings.Trim(n.text[exponent+1:], "+-")) > 4 {
		c.refuse(at, "must be a number of at most %d characters and 4 digits of exponent", MaxNumber)
	}
	return parseDecimal(nil, n.text)
}

// operator compiles an operator, named by its node.
func (c *compiler) operator(n *node, at string) condition {
	switch n.name {
	case "numeric":
		return c.numeric(n, at)
	case "exists":
		op, known := map[jsontext.Kind]op{'t': isPresent, 'f': isAbsent}[n.kind]
		if !known {
			c.refuse(at, "must be true or false")
		}
		return condition{op: op}
	case "anything-but":
		return c.anythingBut(n, at)
	case "prefix", "suffix":
		if n.kind == '{' {
			return c.folded(n, at)
		}
	}
	return c.about(n.name, n, at)
}

// folded compiles a prefix or suffix that is compared regardless of case.
func (c *compiler) folded(n *node, at string) (one condition) {
	const wanted = "must be a text, or an object with equals-ignore-case"
	for i := range n.below {
		m := &n.below[i]
		if m.name != "equals-ignore-case" {
			c.refuse(at, wanted)
		}
		one = c.about(n.name, m, join(at, m.name))
		one.fold = true
	}
	if len(n.below) != 1 {
		c.refuse(at, wanted)
	}
	return one
}

// about compiles an operator on text.
func (c *compiler) about(name string, n *node, at string) condition {
	ops := map[string]op{"prefix": isPrefix, "suffix": isSuffix, "equals-ignore-case": isText, "wildcard": isWildcard}
	op, known := ops[name]
	if !known {
		c.refuse(at, "is not an operator: use prefix, suffix, equals-ignore-case, wildcard, numeric, anything-but or exists")
	}
	one := condition{op: op, text: c.text(n, at)}
	switch {
	case name == "equals-ignore-case":
		one.fold = true
	case one.text == "":
		c.refuse(at, "must not be empty")
	case name == "wildcard":
		one.pieces, one.text = c.wildcard(one.text, at), ""
	}
	return one
}

// wildcard divides the text of a wildcard at its asterisks.
func (c *compiler) wildcard(text, at string) []string {
	pieces := []string{""}
	for i := 0; i < len(text); i++ {
		last := len(pieces) - 1
		switch {
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == '*' || text[i+1] == '\\'):
			i++
			pieces[last] += text[i : i+1]
		case text[i] == '\\':
			c.refuse(at, `must have a backslash only before * or another backslash`)
		case text[i] == '*' && i > 0 && pieces[last] == "":
			c.refuse(at, "must not have two asterisks in a row")
		case text[i] == '*':
			pieces = append(pieces, "")
		default:
			pieces[last] += text[i : i+1]
		}
	}
	if len(pieces) > MaxStars+1 {
		c.refuse(at, "must have at most %d asterisks", MaxStars)
	}
	return pieces
}

// anythingBut compiles values, or texts of an operator, that a value must not be.
func (c *compiler) anythingBut(n *node, at string) condition {
	const wanted = "must be a text, a number, an array of either, or an object with prefix, suffix, equals-ignore-case or wildcard"
	not := condition{op: isNot}
	if n.kind != '{' {
		not.others = c.several(n, at, func(n *node, at string) condition {
			if n.kind != '"' && n.kind != '0' {
				c.refuse(at, wanted)
			}
			return c.condition(n, at)
		})
		for i := range not.others {
			if not.others[i].op != not.others[0].op {
				c.refuse(at, "must be all texts or all numbers")
			}
		}
		return not
	}
	for i := range n.below {
		m := &n.below[i]
		not.others = c.several(m, join(at, m.name), func(n *node, at string) condition { return c.about(m.name, n, at) })
	}
	if len(n.below) != 1 {
		c.refuse(at, wanted)
	}
	return not
}

// several compiles one value, or an array of some. The first is counted as the
// condition that they belong to.
func (c *compiler) several(n *node, at string, one func(n *node, at string) condition) (all []condition) {
	if n.kind != '[' {
		return []condition{one(n, at)}
	}
	for i := range n.below {
		if i > 0 {
			c.count(at + index(i))
		}
		all = append(all, one(&n.below[i], at+index(i)))
	}
	if len(all) == 0 {
		c.refuse(at, "must not be empty")
	}
	return all
}

// numeric compiles one or two bounds.
func (c *compiler) numeric(n *node, at string) condition {
	const wanted = `must be ["=", number], or one or two bounds, the lower first: [">", 0, "<=", 5]`
	one := condition{op: isNumber}
	if n.kind != '[' {
		c.refuse(at, "must be an array")
		return one
	}
	operator := ""
	for i := range n.below {
		m, place := &n.below[i], at+index(i)
		if i%2 == 0 {
			operator = c.text(m, place)
			continue
		}
		b := bound{given: true, inclusive: len(operator) == 2, number: c.number(m, place)}
		switch {
		case operator == "=" && i == 1:
			one = equals(b.number)
		case (operator == ">" || operator == ">=") && i == 1:
			one.low = b
		case (operator == "<" || operator == "<=") && !one.high.given:
			one.high = b
		default:
			c.refuse(at, wanted)
		}
	}
	switch {
	case len(n.below) != 2 && len(n.below) != 4:
		c.refuse(at, wanted)
	case len(n.below) == 4 && one.low.number.compare(one.high.number) >= 0:
		c.refuse(at, "must have a lower bound that is less than the upper one")
	}
	return one
}
