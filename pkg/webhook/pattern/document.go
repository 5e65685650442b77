package pattern

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Document is a parsed JSON object. It is safe for concurrent use.
type Document struct{ root node }

// node is a JSON value; nil where none is.
type node struct {
	kind  jsontext.Kind // '{', '[', '"', '0', 't', 'f' or 'n'
	name  string        // of a member of an object
	text  string        // of a text, without escapes; of a number as it is written
	below []node        // the members of an object, or the elements of an array
}

// ParseDocument reads a JSON object.
func ParseDocument(text []byte) (*Document, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return nil, fmt.Errorf("a document of %d bytes is not a JSON object", len(text))
	}
	root, err := read(dec)
	if err != nil {
		return nil, fmt.Errorf("a document of %d bytes: %w", len(text), err)
	}
	return &Document{root}, nil
}

// read reads the next value.
func read(dec *jsontext.Decoder) (n node, err error) {
	n.kind = dec.PeekKind()
	token, err := dec.ReadToken()
	switch {
	case err != nil:
		return n, err
	case n.kind == '"', n.kind == '0':
		n.text = token.String()
		return n, nil
	case n.kind != '{' && n.kind != '[':
		return n, nil
	}
	for dec.PeekKind() != n.kind+2 { // ] is two after [, and } after {
		name := ""
		if n.kind == '{' {
			if token, err = dec.ReadToken(); err != nil {
				return n, err
			}
			name = token.String()
		}
		member, err := read(dec)
		if err != nil {
			return n, err
		}
		member.name = name
		n.below = append(n.below, member)
	}
	_, err = dec.ReadToken()
	return n, err
}

// member is the member of an object; nil when it has none of the name, or the
// node is no object.
func (n *node) member(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for i := range n.below {
		if n.below[i].name == name {
			return &n.below[i]
		}
	}
	return nil
}

// Has reports whether the path of names leads to a member, through objects only.
func (d *Document) Has(path ...string) bool {
	at := &d.root
	for _, name := range path {
		at = at.member(name)
	}
	return at != nil
}
