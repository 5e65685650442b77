package template

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node is one value of the template: a scalar's text, a mapping or a list. An intrinsic is a mapping with a single key
// in its long form ("Ref", "Fn::Sub"), however it was written. A nil *node is an absent value.
type node struct {
	kind     kind
	text     string // a scalar's, without quotes
	keys     []string
	values   map[string]*node
	elements []*node
	line     int
}

type kind uint8

const (
	null kind = iota
	scalar
	mapping
	list
)

// get returns the value below the keys, nil when there is none.
func (n *node) get(keys ...string) *node {
	for _, key := range keys {
		if n == nil || n.kind != mapping {
			return nil
		}
		n = n.values[key]
	}
	return n
}

// pairs goes through a mapping in the order of the file.
func (n *node) pairs() iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		if n == nil {
			return
		}
		for _, key := range n.keys {
			if !yield(key, n.values[key]) {
				return
			}
		}
	}
}

// list returns the elements of a list, none for an absent one.
func (n *node) list() []*node {
	if n == nil {
		return nil
	}
	return n.elements
}

// intrinsic returns the function's name and argument when n is one.
func (n *node) intrinsic() (name string, argument *node, ok bool) {
	if n == nil || n.kind != mapping || len(n.keys) != 1 {
		return "", nil, false
	}
	name = n.keys[0]
	if name != "Ref" && name != "Condition" && !strings.HasPrefix(name, "Fn::") {
		return "", nil, false
	}
	return name, n.values[name], true
}

// target returns the logical id that a Ref or GetAtt names, "" otherwise.
func (n *node) target() string {
	name, argument, ok := n.intrinsic()
	switch {
	case ok && name == "Ref":
		return argument.text
	case ok && name == "Fn::GetAtt" && len(argument.list()) > 0:
		return argument.elements[0].text
	}
	return ""
}

// reader turns YAML into nodes.
type reader struct {
	anchors map[string]*node
}

func readYAML(source []byte) (*node, error) {
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, errors.New("parse YAML: want one document")
	}
	r := reader{anchors: map[string]*node{}}
	return r.read(file.Docs[0].Body)
}

func (r *reader) read(from ast.Node) (*node, error) {
	line := from.GetToken().Position.Line
	switch from := from.(type) {
	case *ast.MappingNode:
		return r.mapping(from.Values, line)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{from}, line)
	case *ast.SequenceNode:
		return r.list(from, line)
	case *ast.TagNode:
		return r.tag(from, line)
	case *ast.AnchorNode:
		n, err := r.read(from.Value)
		r.anchors[from.Name.GetToken().Value] = n
		return n, err
	case *ast.AliasNode:
		name := from.Value.GetToken().Value
		if n := r.anchors[name]; n != nil {
			return n, nil
		}
		return nil, fmt.Errorf("line %d: no anchor %s before its alias", line, name)
	case *ast.NullNode:
		return &node{kind: null, line: line}, nil
	case *ast.LiteralNode:
		return &node{kind: scalar, text: from.Value.Value, line: line}, nil
	case *ast.StringNode:
		return &node{kind: scalar, text: from.Value, line: line}, nil
	case ast.ScalarNode:
		return &node{kind: scalar, text: from.GetToken().Value, line: line}, nil
	}
	return nil, fmt.Errorf("line %d: cannot read a %s", line, from.Type())
}

func (r *reader) mapping(pairs []*ast.MappingValueNode, line int) (*node, error) {
	n := &node{kind: mapping, values: make(map[string]*node, len(pairs)), line: line}
	for _, pair := range pairs {
		key, err := r.read(pair.Key)
		if err != nil {
			return nil, err
		}
		if n.values[key.text], err = r.read(pair.Value); err != nil {
			return nil, err
		}
		n.keys = append(n.keys, key.text)
	}
	return n, nil
}

func (r *reader) list(from *ast.SequenceNode, line int) (*node, error) {
	n := &node{kind: list, line: line}
	for _, value := range from.Values {
		element, err := r.read(value)
		if err != nil {
			return nil, err
		}
		n.elements = append(n.elements, element)
	}
	return n, nil
}

// tag reads an intrinsic in its short form as the long one.
func (r *reader) tag(from *ast.TagNode, line int) (*node, error) {
	argument, err := r.read(from.Value)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(from.Start.Value, "!")
	if name == "GetAtt" && argument.kind == scalar {
		id, attribute, _ := strings.Cut(argument.text, ".")
		argument = &node{kind: list, line: line, elements: []*node{
			{kind: scalar, text: id, line: line}, {kind: scalar, text: attribute, line: line},
		}}
	}
	if name != "Ref" && name != "Condition" {
		name = "Fn::" + name
	}
	return &node{kind: mapping, keys: []string{name}, values: map[string]*node{name: argument}, line: line}, nil
}
