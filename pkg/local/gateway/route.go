package gateway

import (
	"strings"

	"github.com/commerce-integration/service/pkg/local/template"
)

// routes finds the method of a path. A literal segment beats a parameter, a parameter beats a greedy one; an exact
// method beats ANY.
type routes struct {
	literal   map[string]*routes
	parameter *routes
	greedy    *routes
	name      string // of the parameter that leads here
	methods   map[string]template.Route
}

func newRoutes(declared []template.Route) *routes {
	root := &routes{}
	for _, route := range declared {
		n := root
		for segment := range strings.SplitSeq(strings.Trim(route.Path, "/"), "/") {
			if segment != "" {
				n = n.child(segment)
			}
		}
		if n.methods == nil {
			n.methods = map[string]template.Route{}
		}
		n.methods[route.Method] = route
	}
	return root
}

// child returns the node below n for a segment of a declared path.
func (n *routes) child(segment string) *routes {
	name, isParameter := strings.CutPrefix(segment, "{")
	if !isParameter {
		if n.literal == nil {
			n.literal = map[string]*routes{}
		}
		if n.literal[segment] == nil {
			n.literal[segment] = &routes{}
		}
		return n.literal[segment]
	}
	name = strings.TrimSuffix(name, "}")
	child := &n.parameter
	if greedy, ok := strings.CutSuffix(name, "+"); ok {
		name, child = greedy, &n.greedy
	}
	if *child == nil {
		*child = &routes{name: name}
	}
	return *child
}

// match finds the route of a request and its path parameters, escaped as they were sent. A slash at the end does not
// count.
func (n *routes) match(method, path string) (template.Route, map[string]string, bool) {
	rest := strings.TrimRight(strings.TrimPrefix(path, "/"), "/")
	parameters := map[string]string{}
	found := n.find(rest, parameters)
	if found == nil {
		return template.Route{}, nil, false
	}
	route, ok := found.methods[method]
	// API Gateway knows methods in capitals only; a function would take get for GET, without an authorizer.
	if !ok && method == strings.ToUpper(method) {
		route, ok = found.methods[template.AnyMethod]
	}
	return route, parameters, ok
}

// find walks down to the node with methods that fits the rest of a path best.
func (n *routes) find(rest string, parameters map[string]string) *routes {
	if rest == "" {
		if n.methods == nil {
			return nil
		}
		return n
	}
	segment, below, _ := strings.Cut(rest, "/")
	if next := n.literal[segment]; next != nil {
		if found := next.find(below, parameters); found != nil {
			return found
		}
	}
	if n.parameter != nil && segment != "" {
		if found := n.parameter.find(below, parameters); found != nil {
			parameters[n.parameter.name] = segment
			return found
		}
	}
	if n.greedy != nil {
		parameters[n.greedy.name] = rest
	}
	return n.greedy
}
