package importer

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value that is put together path by path: a leaf, or an
// object or array with its children in the order in which they came.
type node struct {
	leaf     jsontext.Value
	names    []string // of the children: members, or positions such as [0]
	children map[string]*node
}

var errOverlap = errors.New("overlaps with another column of this row")

// set puts v at the path. A path through a value that is there whole, or a
// whole value over parts of it, is an error.
func (n *node) set(path []string, v jsontext.Value) error {
	switch {
	case n.leaf != nil, len(path) == 0 && n.children != nil:
		return errOverlap
	case len(path) == 0:
		n.leaf = v
		return nil
	case n.children == nil:
		n.children = map[string]*node{}
	}
	child := n.children[path[0]]
	if child == nil {
		child = &node{}
		n.children[path[0]] = child
		n.names = append(n.names, path[0])
	}
	return child.set(path[1:], v)
}

func positionStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

// appendJSON writes the value, which is not empty; an array must have no gaps.
func (n *node) appendJSON(b []byte) (_ []byte, err error) {
	if n.leaf != nil {
		return append(b, n.leaf...), nil
	}
	open, array := byte('{'), n.names[0][0] == '['
	if array {
		open = '['
	}
	for i, name := range n.names {
		b = append(b, open)
		open = ','
		child := n.children[name]
		if !array {
			b = append(append(b, encode(name)...), ':')
		} else if child = n.children[positionStep(i)]; child == nil {
			return nil, fmt.Errorf("[%d] is empty, but a later entry is not", i)
		}
		if b, err = child.appendJSON(b); err != nil {
			if !array {
				err = fmt.Errorf("%s%w", name, err)
			}
			return nil, err
		}
	}
	if array {
		return append(b, ']'), nil
	}
	return append(b, '}'), nil
}
