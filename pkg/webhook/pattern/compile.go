package pattern

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// orName names a group of alternatives.
const orName = "$or"

// Error tells what is wrong with a pattern, and where.
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
	c := compiler{dec: jsontext.NewDecoder(bytes.NewBuffer(text))}
	if len(text) > MaxBytes {
		return nil, refuse("", "must have at most %d bytes", MaxBytes)
	}
	p := &Pattern{}
	var err error
	if p.root, err = c.object("", 1); err != nil {
		return nil, err
	}
	if _, err := c.dec.ReadToken(); err == nil {
		return nil, refuse("", "must be one JSON object")
	}
	return p, nil
}

func refuse(at, format string, args ...any) error {
	return &Error{At: at, Reason: fmt.Sprintf(format, args...)}
}

// compiler reads a pattern from its decoder, which refuses repeated names.
type compiler struct {
	dec        *jsontext.Decoder
	conditions int
}

// each calls do at every element of the array, or every name of the object, that
// comes next; n is the number of those before.
func (c *compiler) each(at string, open jsontext.Kind, what string, do func(n int) error) (n int, err error) {
	if c.dec.PeekKind() != open {
		return 0, refuse(at, "must be %s", what)
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return 0, malformed(at, err)
	}
	for ; ; n++ {
		switch c.dec.PeekKind() {
		case open + 2: // ] is two after [, and } after {
			_, err := c.dec.ReadToken()
			return n, malformed(at, err)
		case 0:
			_, err := c.dec.ReadToken()
			return n, malformed(at, err)
		}
		if err := do(n); err != nil {
			return n, err
		}
	}
}

func malformed(at string, err error) error {
	if err == nil {
		return nil
	}
	return refuse(at, "must be valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
}

func (c *compiler) name(at string) (string, error) {
	token, err := c.dec.ReadToken()
	if err != nil {
		return "", malformed(at, err)
	}
	return token.String(), nil
}

// object reads an object of the pattern at a level, from 1.
func (c *compiler) object(at string, level int) (o object, err error) {
	if level > MaxLevels {
		return o, refuse(at, "must be at most %d levels deep", MaxLevels)
	}
	n, err := c.each(at, '{', "an object", func(int) error {
		name, err := c.name(at)
		if err != nil {
			return err
		}
		if name == "" {
			return refuse(at, "must name its fields")
		}
		if name == orName {
			group, err := c.group(join(at, name), level)
			o.groups = append(o.groups, group)
			return err
		}
		f, err := c.field(name, join(at, name), level)
		o.fields = append(o.fields, f)
		return err
	})
	if err == nil && n == 0 {
		err = refuse(at, "must not be empty")
	}
	return o, err
}

// group reads the alternatives of a $or.
func (c *compiler) group(at string, level int) (alternatives []object, err error) {
	n, err := c.each(at, '[', "an array of at least two patterns", func(n int) error {
		o, err := c.object(at+index(n), level+1)
		alternatives = append(alternatives, o)
		return err
	})
	if err == nil && n < 2 {
		err = refuse(at, "must be an array of at least two patterns")
	}
	return alternatives, err
}

func (c *compiler) field(name, at string, level int) (f field, err error) {
	f.name = name
	if c.dec.PeekKind() == '{' {
		nested, err := c.object(at, level+1)
		f.nested = &nested
		return f, err
	}
	n, err := c.each(at, '[', "an array of conditions, or an object of fields", func(n int) error {
		if c.conditions++; c.conditions > MaxConditions {
			return refuse(at, "must leave the pattern with at most %d conditions", MaxConditions)
		}
		one, err := c.condition(at + index(n))
		f.conditions = append(f.conditions, one)
		return err
	})
	if err == nil && n == 0 {
		err = refuse(at, "must have a condition")
	}
	return f, err
}

// condition reads a value, or an object with one operator.
func (c *compiler) condition(at string) (condition, error) {
	switch kind := c.dec.PeekKind(); kind {
	case '"':
		text, err := c.text(at)
		return condition{op: isText, text: text}, err
	case '0':
		number, err := c.number(at)
		return equals(number), err
	case 't', 'f', 'n':
		_, err := c.dec.ReadToken()
		return condition{op: isLiteral, literal: byte(kind)}, malformed(at, err)
	case '{':
		var one condition
		n, err := c.each(at, '{', "", func(int) error {
			name, err := c.name(at)
			if err == nil {
				one, err = c.operator(name, join(at, name))
			}
			return err
		})
		if err == nil && n != 1 {
			err = refuse(at, "must have exactly one operator")
		}
		return one, err
	}
	return condition{}, refuse(at, "must be a text, a number, true, false, null or an object with an operator")
}

func equals(number decimal) condition {
	b := bound{given: true, inclusive: true, number: number}
	return condition{op: isNumber, low: b, high: b}
}

// text reads a text.
func (c *compiler) text(at string) ([]byte, error) {
	if c.dec.PeekKind() != '"' {
		return nil, refuse(at, "must be a text")
	}
	token, err := c.dec.ReadToken()
	if err != nil {
		return nil, malformed(at, err)
	}
	return []byte(token.String()), nil
}

// number reads a number.
func (c *compiler) number(at string) (decimal, error) {
	if c.dec.PeekKind() != '0' {
		return decimal{}, refuse(at, "must be a number")
	}
	raw, err := c.dec.ReadValue()
	if err != nil {
		return decimal{}, malformed(at, err)
	}
	if exponent := bytes.IndexAny(raw, "eE"); len(raw) > MaxNumber || exponent >= 0 && len(bytes.Trim(raw[exponent+1:], "+-")) > 4 {
		return decimal{}, refuse(at, "must be a number of at most %d characters and 4 digits of exponent", MaxNumber)
	}
	return parseDecimal(nil, raw), nil
}

// operator reads what an operator takes.
func (c *compiler) operator(name, at string) (condition, error) {
	switch name {
	case "numeric":
		return c.numeric(at)
	case "exists":
		asked := map[jsontext.Kind]op{'t': isPresent, 'f': isAbsent}
		op, known := asked[c.dec.PeekKind()]
		if !known {
			return condition{}, refuse(at, "must be true or false")
		}
		_, err := c.dec.ReadToken()
		return condition{op: op}, malformed(at, err)
	case "anything-but":
		return c.anythingBut(at)
	case "prefix", "suffix":
		if c.dec.PeekKind() == '{' {
			var one condition
			n, err := c.each(at, '{', "", func(int) error {
				fold, err := c.name(at)
				if err == nil && fold != "equals-ignore-case" {
					return refuse(at, "must be a text, or an object with equals-ignore-case")
				}
				if err == nil {
					one, err = c.about(name, join(at, fold))
				}
				one.fold = true
				return err
			})
			if err == nil && n != 1 {
				err = refuse(at, "must be a text, or an object with equals-ignore-case")
			}
			return one, err
		}
	}
	return c.about(name, at)
}

// about reads the text of an operator on text.
func (c *compiler) about(name, at string) (one condition, err error) {
	ops := map[string]op{"prefix": isPrefix, "suffix": isSuffix, "equals-ignore-case": isText, "wildcard": isWildcard}
	var known bool
	if one.op, known = ops[name]; !known {
		return one, refuse(at, "is no operator: use prefix, suffix, equals-ignore-case, wildcard, numeric, anything-but or exists")
	}
	if one.text, err = c.text(at); err != nil {
		return one, err
	}
	switch {
	case name == "equals-ignore-case":
		one.fold = true
	case len(one.text) == 0:
		err = refuse(at, "must not be empty")
	case name == "wildcard":
		one.pieces, err = splitWildcard(one.text, at)
		one.text = nil
	}
	return one, err
}

// splitWildcard divides the text of a wildcard at its asterisks.
func splitWildcard(text []byte, at string) ([][]byte, error) {
	pieces := [][]byte{{}}
	for i := 0; i < len(text); i++ {
		last := len(pieces) - 1
		switch {
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == '*' || text[i+1] == '\\'):
			i++
			pieces[last] = append(pieces[last], text[i])
		case text[i] == '\\':
			return nil, refuse(at, `must have a backslash only before * or another backslash`)
		case text[i] == '*' && i > 0 && len(pieces[last]) == 0:
			return nil, refuse(at, "must not have two asterisks in a row")
		case text[i] == '*':
			pieces = append(pieces, []byte{})
		default:
			pieces[last] = append(pieces[last], text[i])
		}
	}
	if len(pieces) > MaxStars+1 {
		return nil, refuse(at, "must have at most %d asterisks", MaxStars)
	}
	return pieces, nil
}

// anythingBut reads values, or texts of an operator, that a value must not be.
func (c *compiler) anythingBut(at string) (condition, error) {
	const wanted = "must be a text, a number, an array of either, or an object with prefix, suffix, equals-ignore-case or wildcard"
	not := condition{op: isNot}
	add := func(read func(at string) (condition, error), at string) error {
		if c.conditions++; c.conditions > MaxConditions {
			return refuse(at, "must leave the pattern with at most %d conditions", MaxConditions)
		}
		one, err := read(at)
		not.others = append(not.others, one)
		return err
	}
	// several reads one value, or an array of some.
	several := func(read func(at string) (condition, error), at string) error {
		c.conditions-- // the first is counted as the condition itself
		if c.dec.PeekKind() != '[' {
			return add(read, at)
		}
		n, err := c.each(at, '[', "", func(n int) error { return add(read, at+index(n)) })
		if err == nil && n == 0 {
			err = refuse(at, "must not be empty")
		}
		return err
	}
	if c.dec.PeekKind() != '{' {
		err := several(func(at string) (condition, error) {
			if kind := c.dec.PeekKind(); kind != '"' && kind != '0' {
				return condition{}, refuse(at, wanted)
			}
			return c.condition(at)
		}, at)
		for i := range not.others {
			if err == nil && not.others[i].op != not.others[0].op {
				err = refuse(at, "must be all texts or all numbers")
			}
		}
		return not, err
	}
	n, err := c.each(at, '{', "", func(int) error {
		name, err := c.name(at)
		if err != nil {
			return err
		}
		return several(func(at string) (condition, error) { return c.about(name, at) }, join(at, name))
	})
	if err == nil && n != 1 {
		err = refuse(at, wanted)
	}
	return not, err
}

// numeric reads one or two bounds.
func (c *compiler) numeric(at string) (condition, error) {
	const wanted = `must be ["=", number], or one or two bounds, the lower first: [">", 0, "<=", 5]`
	one := condition{op: isNumber}
	var operator string
	n, err := c.each(at, '[', "an array", func(n int) error {
		if n%2 == 0 {
			text, err := c.text(at + index(n))
			operator = string(text)
			return err
		}
		number, err := c.number(at + index(n))
		b := bound{given: true, inclusive: len(operator) == 2, number: number}
		switch {
		case err != nil:
		case operator == "=" && n == 1:
			one = equals(number)
		case (operator == ">" || operator == ">=") && n == 1:
			one.low = b
		case (operator == "<" || operator == "<=") && !one.high.given:
			one.high = b
		default:
			err = refuse(at, wanted)
		}
		return err
	})
	switch {
	case err != nil:
	case n != 2 && n != 4:
		err = refuse(at, wanted)
	case n == 4 && one.low.number.compare(one.high.number) >= 0:
		err = refuse(at, "must have a lower bound that is less than the upper one")
	}
	return one, err
}
