package pattern

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Document is a parsed JSON object. It aliases the text that it was parsed
// from, and is safe for concurrent use.
type Document struct {
	text   []byte
	values []node
}

// node is one value of a document. The values are in the order of the text, so
// that what an object or an array has begins behind it.
type node struct {
	kind      byte  // '{', '[', '"', '0', 't', 'f' or 'n'
	nameStart int32 // of a member of an object: its name with its quotes
	nameEnd   int32
	start     int32 // of the value's text
	end       int32
	behind    int32 // the first value that is not below this one
}

// absent is the position of a value that is not there.
const absent int32 = -1

const (
	maxDocument       = 1 << 30 // bytes, so that positions fit
	maxDocumentLevels = 100
)

var errDocument = errors.New("not a JSON object")

// ParseDocument reads a JSON object. The text is trusted to be JSON: what it
// makes of another is not defined, except that it does not fail. An error tells
// that it cannot be taken apart.
func ParseDocument(text []byte) (*Document, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("a document of %d bytes: %w", len(text), errDocument)
	}
	s := scanner{text: text, values: make([]node, 0, 8+len(text)/12)}
	s.space()
	if s.peek() != '{' || !s.value(node{}, 0) {
		return nil, fmt.Errorf("byte %d: %w", s.at, errDocument)
	}
	return &Document{text: text, values: s.values}, nil
}

// scanner takes a text apart.
type scanner struct {
	text   []byte
	at     int
	values []node
}

// peek is the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.text) && s.text[s.at] <= ' ' {
		s.at++
	}
}

// take passes over a byte and the white space behind it.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	s.space()
	return true
}

// value reads a value and the white space behind it. n has its name.
func (s *scanner) value(n node, level int) bool {
	at := len(s.values)
	n.kind, n.start = s.peek(), int32(s.at) //nolint:gosec // bounded by maxDocument
	s.values = append(s.values, n)
	ok := true
	switch n.kind {
	case '{', '[':
		ok = level < maxDocumentLevels && s.members(n.kind, level+1)
	case '"':
		ok = s.quoted()
	case 't', 'f', 'n':
		s.word()
	default:
		s.values[at].kind = '0'
		ok = n.kind == '-' || n.kind >= '0' && n.kind <= '9'
		s.word()
	}
	s.values[at].end, s.values[at].behind = int32(s.at), int32(len(s.values)) //nolint:gosec // as above
	s.space()
	return ok
}

// members reads what is in an object or an array.
func (s *scanner) members(open byte, level int) bool {
	s.take(open)
	closing := open + 2 // ] is two after [, and } after {
	for s.peek() != closing {
		var n node
		if open == '{' {
			n.nameStart = int32(s.at) //nolint:gosec // bounded by maxDocument
			if s.peek() != '"' || !s.quoted() {
				return false
			}
			n.nameEnd = int32(s.at) //nolint:gosec // as above
			s.space()
			if !s.take(':') {
				return false
			}
		}
		if !s.value(n, level) {
			return false
		}
		if !s.take(',') && s.peek() != closing {
			return false
		}
	}
	s.at++
	return true
}

// quoted passes over a text in quotes.
func (s *scanner) quoted() bool {
	for at := s.at + 1; at < len(s.text); at++ {
		switch s.text[at] {
		case '"':
			s.at = at + 1
			return true
		case '\\':
			at++
		}
	}
	return false
}

// word passes over a number, true, false or null.
func (s *scanner) word() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return
		}
		s.at++
	}
}

// kind is the kind of the value; 0 when it is not there.
func (d *Document) kind(at int32) byte {
	if at == absent {
		return 0
	}
	return d.values[at].kind
}

// first is the first value of the object or the array; absent when it is empty.
func (d *Document) first(of int32) int32 {
	if d.values[of].behind == of+1 {
		return absent
	}
	return of + 1
}

// next is the value behind one of the object or the array; absent at the end.
func (d *Document) next(of, at int32) int32 {
	if behind := d.values[at].behind; behind < d.values[of].behind {
		return behind
	}
	return absent
}

// member is the member of the object; absent when it has none of the name, or
// is no object.
func (d *Document) member(of int32, name string) int32 {
	if d.kind(of) != '{' {
		return absent
	}
	for at := d.first(of); at != absent; at = d.next(of, at) {
		n := &d.values[at]
		quoted := d.text[n.nameStart:n.nameEnd]
		if len(quoted) == len(name)+2 && string(quoted[1:len(quoted)-1]) == name ||
			len(quoted) > len(name)+2 && bytes.IndexByte(quoted, '\\') >= 0 && string(unquote(quoted)) == name {
			return at
		}
	}
	return absent
}

func (d *Document) scalar(at int32) scalar {
	n := &d.values[at]
	v := scalar{kind: n.kind, text: d.text[n.start:n.end]}
	if n.kind == '"' {
		v.text = unquote(v.text)
	}
	return v
}

// unquote is the text of a JSON text in quotes.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // an error is of a text that was no JSON
	return text
}

// Has reports whether the path of names leads to a member, through objects only.
func (d *Document) Has(path ...string) bool {
	at := int32(0)
	for _, name := range path {
		at = d.member(at, name)
	}
	return at != absent
}
