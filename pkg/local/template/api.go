package template

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// AnyMethod is the method of a route that takes every method for which its path declares none.
const AnyMethod = "ANY"

// API is the REST API.
type API struct {
	Stage       string
	Routes      []Route // by path, then method
	Authorizers map[string]Authorizer
	// Responses holds the gateway's own answers by type, such as ACCESS_DENIED. The template declares every type.
	Responses map[string]GatewayResponse
}

// Route is a method of a resource.
type Route struct {
	Method     string // upper case, or AnyMethod
	Path       string // {name} takes one segment, a last {name+} all the rest
	Function   string // its name
	Authorizer string // its name, "" for none
}

// Authorizer is a REQUEST authorizer.
type Authorizer struct {
	Name     string `json:"-"`
	Function string `json:"-"`
	// Headers are the identity sources. A request that lacks one is refused without a call; the values are the key of the
	// cache.
	Headers []string
	TTL     time.Duration `json:"ReauthorizeEvery"` // how long an answer is kept; 0 keeps none
}

// GatewayResponse is an answer that the gateway gives itself.
type GatewayResponse struct {
	Status     int `json:"StatusCode"`
	Parameters struct {
		// Headers by name: a text in single quotes, context.<path> or method.request.header.<name>.
		Headers map[string]string
	} `json:"ResponseParameters"`
	// Templates by content type, with $context.<path> to be substituted.
	Templates map[string]string `json:"ResponseTemplates"`
}

// declaredAPI is the API as the template writes it.
type declaredAPI struct {
	StageName      string
	Auth           struct{ Authorizers map[string]declaredAuthorizer }
	DefinitionBody struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	GatewayResponses map[string]GatewayResponse
}

type declaredAuthorizer struct {
	FunctionARN string `json:"FunctionArn"`
	Identity    Authorizer
}

type operation struct {
	Security    []map[string]any `json:"security"`
	Integration struct {
		URI string `json:"uri"`
	} `json:"x-amazon-apigateway-integration"`
}

func (m *Model) api(_ *resolver, _ string, properties jsontext.Value) error {
	var declared declaredAPI
	if err := decode(properties, &declared); err != nil {
		return err
	}
	m.API = API{Stage: declared.StageName, Authorizers: map[string]Authorizer{}, Responses: declared.GatewayResponses}
	for name, authorizer := range declared.Auth.Authorizers {
		if err := m.authorizer(name, &authorizer); err != nil {
			return fmt.Errorf("authorizer %s: %w", name, err)
		}
	}
	for path, methods := range declared.DefinitionBody.Paths {
		for method, operation := range methods {
			if err := m.route(path, method, &operation); err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
		}
	}
	slices.SortFunc(m.API.Routes, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return nil
}

func (m *Model) authorizer(name string, declared *declaredAuthorizer) error {
	a := declared.Identity
	a.Name = name
	var err error
	a.Function, err = m.functionNamed(declared.FunctionARN)
	m.API.Authorizers[name] = a
	return err
}

func (m *Model) route(path, method string, declared *operation) (err error) {
	route := Route{Method: strings.ToUpper(method), Path: path}
	if method == "x-amazon-apigateway-any-method" {
		route.Method = AnyMethod
	}
	for _, requirement := range declared.Security {
		for name := range requirement {
			if route.Authorizer != "" {
				return errors.New("more than one authorizer")
			}
			if _, ok := m.API.Authorizers[name]; !ok {
				return fmt.Errorf("no authorizer %s", name)
			}
			route.Authorizer = name
		}
	}
	route.Function, err = m.functionNamed(declared.Integration.URI)
	m.API.Routes = append(m.API.Routes, route)
	return err
}
