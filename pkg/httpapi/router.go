package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// route is one path with its operations by method.
type route struct {
	segments []string // a parameter keeps its braces
	methods  map[string]*Operation
}

// router finds operations by path; a literal segment wins over a parameter,
// and a trailing slash changes nothing.
type router struct{ routes []*route }

func newRouter(operations []Operation) *router {
	rt := &router{}
	for _, op := range operations {
		op = op.Complete()
		rt.at(op.Path).methods[op.Method] = &op
	}
	slices.SortStableFunc(rt.routes, func(a, b *route) int { return a.parameters() - b.parameters() })
	return rt
}

func (rt *router) at(path string) *route {
	segments := split(path)
	for _, r := range rt.routes {
		if slices.Equal(r.segments, segments) {
			return r
		}
	}
	r := &route{segments: segments, methods: map[string]*Operation{}}
	rt.routes = append(rt.routes, r)
	return r
}

func (r *route) parameters() int {
	n := 0
	for _, s := range r.segments {
		if isParam(s) {
			n++
		}
	}
	return n
}

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

func isParam(segment string) bool { return strings.HasPrefix(segment, "{") }

// find returns the operation and the raw path parameters, or a 404 or 405.
func (rt *router) find(method, path string) (*Operation, map[string]string, error) {
	segments := split(path)
	for _, r := range rt.routes {
		params, ok := r.match(segments)
		if !ok {
			continue
		}
		lookup := method
		if method == http.MethodHead {
			lookup = http.MethodGet
		}
		if op := r.methods[lookup]; op != nil {
			return op, params, nil
		}
		return nil, nil, &methodNotAllowed{allow: r.allow(), method: method}
	}
	return nil, nil, fault.New(fault.NotFound, fault.CodeNotFound, "no such path; see /openapi.json for the paths there are")
}

func (r *route) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(r.segments) {
		return nil, false
	}
	var params map[string]string
	for i, want := range r.segments {
		switch {
		case isParam(want):
			if params == nil {
				params = make(map[string]string, 2)
			}
			params[strings.Trim(want, "{}")] = segments[i]
		case want != segments[i]:
			return nil, false
		}
	}
	return params, true
}

func (r *route) allow() string {
	methods := make([]string, 0, len(r.methods)+1)
	for m := range r.methods {
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// methodNotAllowed is a fault that also carries the Allow header.
type methodNotAllowed struct{ allow, method string }

func (e *methodNotAllowed) Error() string { return "method " + e.method + " not in " + e.allow }

func (e *methodNotAllowed) Unwrap() error {
	return fault.New(fault.MethodNotAllowed, "method_not_allowed", "this path takes %s", e.allow)
}

// splitPath separates the path parameters that are UUIDs from those that the
// operation declares as text.
func (op *Operation) splitPath(raw map[string]string) (ids map[string]value.ID, texts map[string]string, err error) {
	ids, texts = make(map[string]value.ID, len(raw)), map[string]string{}
	for name, text := range raw {
		if op.param(fault.InPath, name) != nil {
			texts[name] = text
			continue
		}
		if ids[name], err = value.ParseID(text); err != nil {
			return nil, nil, fault.Field(fault.InPath, name, fault.DetailFormat, "%s", err.Error())
		}
	}
	return ids, texts, nil
}

// param returns the declared parameter, or nil.
func (op *Operation) param(in, name string) *Param {
	for i := range op.Params {
		if op.Params[i].In == in && op.Params[i].Name == name {
			return &op.Params[i]
		}
	}
	return nil
}
