package importer

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value that is put together path by path: a leaf, an object
// or an array. Members keep the order in which they came.
type node struct {
	leaf    jsontext.Value
	names   []string
	members map[string]*node
	entries map[int]*node
}

var errOverlap = errors.New("overlaps with another column of this row")

// set puts v at the path. A path through a value that is there whole, or a
// whole value over parts of it, is an error.
func (n *node) set(path []step, v jsontext.Value) error {
	if n.leaf != nil {
		return errOverlap
	}
	if len(path) == 0 {
		if n.members != nil || n.entries != nil {
			return errOverlap
		}
		n.leaf = v
		return nil
	}
	return n.child(path[0]).set(path[1:], v)
}

func (n *node) child(s step) *node {
	if s.member == "" {
		if n.entries == nil {
			n.entries = map[int]*node{}
		}
		if n.entries[s.position] == nil {
			n.entries[s.position] = &node{}
		}
		return n.entries[s.position]
	}
	if n.members == nil {
		n.members = map[string]*node{}
	}
	if n.members[s.member] == nil {
		n.names = append(n.names, s.member)
		n.members[s.member] = &node{}
	}
	return n.members[s.member]
}

// appendJSON writes the value; an array must have no gaps.
func (n *node) appendJSON(b []byte) ([]byte, error) {
	switch {
	case n.leaf != nil:
		return append(b, n.leaf...), nil
	case n.entries != nil:
		return n.appendArray(b)
	}
	var err error
	b = append(b, '{')
	for i, name := range n.names {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = jsontext.AppendQuote(b, name); err != nil {
			return nil, err
		}
		if b, err = n.members[name].appendJSON(append(b, ':')); err != nil {
			return nil, fmt.Errorf("%s%w", name, err)
		}
	}
	return append(b, '}'), nil
}

func (n *node) appendArray(b []byte) ([]byte, error) {
	var err error
	b = append(b, '[')
	for i := range len(n.entries) {
		entry := n.entries[i]
		if entry == nil {
			return nil, fmt.Errorf("[%d] is empty, but a later entry is not", i)
		}
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = entry.appendJSON(b); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}
