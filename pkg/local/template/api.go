package template

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// AnyMethod is the method of a route that takes every method for which its path declares none.
const AnyMethod = "ANY"

// API is the REST API.
type API struct {
	Stage            string
	BinaryMediaTypes []string // "*/*" takes all
	Routes           []Route  // by path, then method
	Authorizers      map[string]Authorizer
	// Responses holds the gateway's own answer of every type, such as ACCESS_DENIED: the template's, else its
	// DEFAULT_4XX or DEFAULT_5XX, else API Gateway's.
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
	Name     string
	Function string
	// Headers and QueryStrings are the identity sources. A request that lacks one is refused without a call; the values
	// are the key of the cache.
	Headers      []string
	QueryStrings []string
	TTL          time.Duration // how long an answer is kept; 0 keeps none
}

// GatewayResponse is an answer that the gateway gives itself.
type GatewayResponse struct {
	// Status is 0 for DEFAULT_4XX and DEFAULT_5XX unless the template says otherwise: they leave it as the case has it.
	Status int
	// Headers by name: a text in single quotes, context.<path> or method.request.header.<name>.
	Headers map[string]string
	// Templates by content type, with $context.<path> to be substituted.
	Templates map[string]string
}

func (x *extractor) api(properties *node) API {
	api := API{
		Stage:       x.text(properties.get("StageName")),
		Authorizers: map[string]Authorizer{},
	}
	for _, mediaType := range x.texts(properties.get("BinaryMediaTypes")) {
		api.BinaryMediaTypes = append(api.BinaryMediaTypes, strings.ReplaceAll(mediaType, "~1", "/"))
	}
	for name, authorizer := range properties.get("Auth", "Authorizers").pairs() {
		api.Authorizers[name] = x.authorizer(name, authorizer)
	}
	for path, methods := range properties.get("DefinitionBody", "paths").pairs() {
		for method, operation := range methods.pairs() {
			route := x.route(path, method, operation)
			if _, ok := api.Authorizers[route.Authorizer]; !ok && route.Authorizer != "" {
				x.fail(operation, "%s %s: no authorizer %s", route.Method, path, route.Authorizer)
			}
			api.Routes = append(api.Routes, route)
		}
	}
	slices.SortFunc(api.Routes, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	api.Responses = x.gatewayResponses(properties.get("GatewayResponses"))
	return api
}

func (x *extractor) authorizer(name string, n *node) Authorizer {
	if kind := x.text(n.get("FunctionPayloadType")); kind != "REQUEST" {
		x.fail(n, "authorizer %s: type %q is not supported, only REQUEST", name, kind)
	}
	const defaultTTL = 300 // API Gateway's own
	return Authorizer{
		Name:         name,
		Function:     x.functionNamed(n.get("FunctionArn")),
		Headers:      x.texts(n.get("Identity", "Headers")),
		QueryStrings: x.texts(n.get("Identity", "QueryStrings")),
		TTL:          x.seconds(n.get("Identity", "ReauthorizeEvery"), defaultTTL),
	}
}

func (x *extractor) route(path, method string, operation *node) Route {
	route := Route{Method: strings.ToUpper(method), Path: path}
	if method == "x-amazon-apigateway-any-method" {
		route.Method = AnyMethod
	}
	integration := operation.get("x-amazon-apigateway-integration")
	if kind := x.text(integration.get("type")); kind != "aws_proxy" {
		x.fail(operation, "%s %s: integration type %q is not supported, only aws_proxy", route.Method, path, kind)
		return route
	}
	route.Function = x.functionNamed(integration.get("uri"))
	for _, requirement := range operation.get("security").list() {
		for name := range requirement.pairs() {
			if route.Authorizer != "" {
				x.fail(operation, "%s %s: more than one authorizer", route.Method, path)
			}
			route.Authorizer = name
		}
	}
	return route
}

// responseStatuses are the types of gateway responses with the status of each unless a template changes it.
var responseStatuses = map[string]int{
	"ACCESS_DENIED":                  403,
	"API_CONFIGURATION_ERROR":        500,
	"AUTHORIZER_CONFIGURATION_ERROR": 500,
	"AUTHORIZER_FAILURE":             500,
	"BAD_REQUEST_BODY":               400,
	"BAD_REQUEST_PARAMETERS":         400,
	"DEFAULT_4XX":                    400,
	"DEFAULT_5XX":                    500,
	"EXPIRED_TOKEN":                  403,
	"INTEGRATION_FAILURE":            504,
	"INTEGRATION_TIMEOUT":            504,
	"INVALID_API_KEY":                403,
	"INVALID_SIGNATURE":              403,
	"MISSING_AUTHENTICATION_TOKEN":   403,
	"QUOTA_EXCEEDED":                 429,
	"REQUEST_TOO_LARGE":              413,
	"RESOURCE_NOT_FOUND":             404,
	"THROTTLED":                      429,
	"UNAUTHORIZED":                   401,
	"UNSUPPORTED_MEDIA_TYPE":         415,
	"WAF_FILTERED":                   403,
}

func (x *extractor) gatewayResponses(declared *node) map[string]GatewayResponse {
	for name, response := range declared.pairs() {
		if responseStatuses[name] == 0 {
			x.fail(response, "%s is no type of gateway response", name)
		}
	}
	responses := make(map[string]GatewayResponse, len(responseStatuses))
	for name, status := range responseStatuses {
		fallback := "DEFAULT_4XX"
		if status >= 500 {
			fallback = "DEFAULT_5XX"
		}
		own := declared.get(name)
		if own == nil {
			own = declared.get(fallback)
		}
		if name == fallback {
			status = 0
		}
		responses[name] = x.gatewayResponse(own, status)
	}
	return responses
}

func (x *extractor) gatewayResponse(n *node, status int) GatewayResponse {
	response := GatewayResponse{
		Status:    x.integer(n.get("StatusCode"), status),
		Headers:   map[string]string{},
		Templates: map[string]string{},
	}
	for name, value := range n.get("ResponseParameters", "Headers").pairs() {
		response.Headers[name] = x.text(value)
	}
	for mediaType, template := range n.get("ResponseTemplates").pairs() {
		response.Templates[mediaType] = x.text(template)
	}
	if len(response.Templates) == 0 {
		response.Templates["application/json"] = `{"message":$context.error.messageString}`
	}
	return response
}
