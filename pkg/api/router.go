package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// route is one path with its operations by method.
type route struct {
	segments []string // a parameter keeps its braces
	params   int
	methods  map[string]*Operation
}

// router finds operations by path; a literal segment wins over a parameter,
// and a trailing slash changes nothing.
type router struct {
	routes   []*route
	literals map[string]bool // segments of the routes
}

func newRouter(operations []Operation) *router {
	rt := &router{literals: map[string]bool{}}
	byPath := map[string]*route{}
	for _, op := range operations {
		op = op.Complete()
		op.parts = newRouter(op.Parts)
		r := byPath[op.Path]
		if r == nil {
			r = &route{segments: split(op.Path), params: strings.Count(op.Path, "{"), methods: map[string]*Operation{}}
			byPath[op.Path] = r
			rt.routes = append(rt.routes, r)
			for _, segment := range r.segments {
				rt.literals[segment] = true
			}
		}
		r.methods[op.Method] = &op
	}
	slices.SortStableFunc(rt.routes, func(a, b *route) int { return a.params - b.params })
	return rt
}

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

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
	return nil, nil, ErrNoSuchPath()
}

// ErrNoSuchPath is the fault of a request to a path that the service does not
// have.
func ErrNoSuchPath() error {
	return fault.New(fault.NotFound, fault.CodeNotFound, "no such path; see /openapi.json for the paths there are")
}

// loggable is the path with * for each segment that is neither an identifier nor
// of a route: a client may have put a secret there by mistake.
func (rt *router) loggable(path string) string {
	segments := split(path)
	for i, segment := range segments {
		if _, err := value.ParseID(segment); err != nil && !rt.literals[segment] {
			segments[i] = "*"
		}
	}
	return "/" + strings.Join(segments, "/")
}

func (r *route) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(r.segments) {
		return nil, false
	}
	params := make(map[string]string, r.params)
	for i, want := range r.segments {
		if name, isParam := strings.CutPrefix(want, "{"); isParam {
			params[strings.TrimSuffix(name, "}")] = segments[i]
		} else if want != segments[i] {
			return nil, false
		}
	}
	return params, true
}

// allow is the value of the Allow header.
func (r *route) allow() string {
	methods := slices.Collect(maps.Keys(r.methods))
	if r.methods[http.MethodGet] != nil {
		methods = append(methods, http.MethodHead)
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
		if op.takes(fault.InPath, name) {
			texts[name] = text
			continue
		}
		if ids[name], err = value.ParseID(text); err != nil {
			return nil, nil, fault.Field(fault.InPath, name, fault.DetailFormat, "%s", err.Error())
		}
	}
	return ids, texts, nil
}

// pathWith is the operation's path with the parameters in one form: identifiers in
// lower case, no trailing slash.
func (op *Operation) pathWith(raw map[string]string) string {
	path := op.Path
	for name, text := range raw {
		if id, err := value.ParseID(text); err == nil {
			text = id.String()
		}
		path = strings.Replace(path, "{"+name+"}", text, 1)
	}
	return path
}

// takes reports whether the operation declares the parameter.
func (op *Operation) takes(in, name string) bool { return op.param(in, name) != nil }

// param is a parameter that the operation declares; nil for another.
func (op *Operation) param(in, name string) *Param {
	i := slices.IndexFunc(op.Params, func(p Param) bool { return p.In == in && p.Takes(name) })
	if i < 0 {
		return nil
	}
	return &op.Params[i]
}
