package template

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A tree is a template or a part of it. Its values are trees, lists ([]any), texts and nil. An intrinsic function is a
// tree with a single key in the long form ("Ref", "Fn::Sub"). Aliases and merges (<<) are resolved.
type tree = map[string]any

func parse(source []byte) (tree, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	if len(document.Content) == 1 {
		if root, ok := valueOf(document.Content[0]).(tree); ok {
			return root, nil
		}
	}
	return nil, errors.New("parse YAML: want a mapping")
}

func valueOf(n *yaml.Node) any {
	var v any = n.Value
	switch {
	case n.Kind == yaml.AliasNode:
		return valueOf(n.Alias)
	case n.Kind == yaml.MappingNode:
		v = mappingOf(n.Content)
	case n.Kind == yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, element := range n.Content {
			list[i] = valueOf(element)
		}
		v = list
	case n.Tag == "!!null":
		v = nil
	}
	// The short form of an intrinsic function is a tag.
	switch name, short := strings.CutPrefix(n.Tag, "!"); {
	case !short || strings.HasPrefix(name, "!"):
		return v
	case name == "Ref" || name == "Condition":
		return tree{name: v}
	default:
		return tree{"Fn::" + name: v}
	}
}

// mappingOf reads pairs of keys and values. The mapping's own keys go before merged ones.
func mappingOf(pairs []*yaml.Node) tree {
	own, inherited := tree{}, tree{}
	for i := 0; i < len(pairs); i += 2 {
		v := valueOf(pairs[i+1])
		if pairs[i].Tag == "!!merge" {
			merged, _ := v.(tree)
			maps.Copy(inherited, merged)
		} else {
			own[pairs[i].Value] = v
		}
	}
	maps.Copy(inherited, own)
	return inherited
}

// at returns the value below the keys, nil when there is none.
func at(v any, keys ...string) any {
	for _, key := range keys {
		t, _ := v.(tree)
		v = t[key]
	}
	return v
}

// below returns the mapping below the keys, an empty one when there is none.
func below(v any, keys ...string) tree {
	t, _ := at(v, keys...).(tree)
	return t
}

// textAt returns the text below the keys, "" when there is none.
func textAt(v any, keys ...string) string {
	text, _ := at(v, keys...).(string)
	return text
}
