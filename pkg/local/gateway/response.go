package gateway

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// refusal is an answer of the gateway itself, by the type of its response.
type refusal struct {
	kind  string
	cause error // to be logged, nil for a fault of the client's
}

func (r *refusal) Error() string { return r.kind }

var errTooLarge = &refusal{kind: "REQUEST_TOO_LARGE"}

// broken is the refusal of an integration that gave no answer or one that the gateway cannot read.
func broken(cause error) *refusal {
	return &refusal{kind: "DEFAULT_5XX", cause: cause}
}

var contextVariable = regexp.MustCompile(`\$context\.[\w.]+`)

// refuse writes the gateway response of a refusal.
func (x *exchange) refuse(refused *refusal) {
	declared := x.api.Responses[refused.kind]
	header := x.w.Header()
	for name, expression := range declared.Parameters.Headers {
		if value := x.mapped(expression, refused); value != "" {
			header.Set(name, value)
		}
	}
	body := contextVariable.ReplaceAllStringFunc(declared.Templates["application/json"], func(name string) string {
		return x.variable(strings.TrimPrefix(name, "$context."), refused)
	})
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(declared.Status)
	if x.r.Method != http.MethodHead {
		// An error means that the client has gone.
		_, _ = x.w.Write([]byte(body))
	}
}

// mapped evaluates the value of a header: a text in single quotes, a variable of the context or a header of the
// request.
func (x *exchange) mapped(expression string, refused *refusal) string {
	if literal, ok := strings.CutPrefix(expression, "'"); ok {
		// A link begins with the stage, which the addresses here lack.
		return strings.Replace(strings.TrimSuffix(literal, "'"), "</"+x.api.Stage+"/", "</", 1)
	}
	if variable, ok := strings.CutPrefix(expression, "context."); ok {
		return x.variable(variable, refused)
	}
	if name, ok := strings.CutPrefix(expression, "method.request.header."); ok {
		return x.r.Header.Get(name)
	}
	return ""
}

// variable returns a variable of the context, "" for one that is not set or not known here.
func (x *exchange) variable(name string, refused *refusal) string {
	if key, ok := strings.CutPrefix(name, "authorizer."); ok {
		text, _ := x.event.RequestContext.Authorizer[key].(string)
		return text
	}
	switch name {
	case "requestId":
		return x.id
	case "error.responseType":
		return refused.kind
	}
	return ""
}
