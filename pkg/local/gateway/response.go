package gateway

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/local/template"
)

// refusal is an answer of the gateway itself, by the type of its response.
type refusal struct {
	kind    string
	message string
	status  int   // where the type leaves it open
	cause   error // to be logged, nil for a fault of the client's
}

func (r *refusal) Error() string { return r.kind + ": " + r.message }

func refuse(kind, message string, cause error) *refusal {
	return &refusal{kind: kind, message: message, cause: cause}
}

// broken is the refusal of an integration that gave no answer or one that the gateway cannot read.
func broken(cause error) *refusal {
	return &refusal{kind: "DEFAULT_5XX", message: "Internal server error", status: http.StatusBadGateway, cause: cause}
}

// response is a gateway response, its template parsed.
type response struct {
	status    int
	mediaType string
	headers   map[string]string
	parts     []templatePart
}

// templatePart is a piece of a template: text, or a variable of the context by its name without "$context.".
type templatePart struct{ text, variable string }

func newResponse(declared template.GatewayResponse) response {
	r := response{status: declared.Status, headers: declared.Headers, mediaType: "application/json"}
	source, ok := declared.Templates[r.mediaType]
	if !ok {
		for mediaType := range declared.Templates {
			if r.mediaType == "application/json" || mediaType < r.mediaType {
				r.mediaType = mediaType
			}
		}
		source = declared.Templates[r.mediaType]
	}
	for source != "" {
		before, after, found := strings.Cut(source, "$context.")
		r.parts = append(r.parts, templatePart{text: before})
		if !found {
			break
		}
		end := strings.IndexFunc(after, func(c rune) bool {
			return c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
		})
		if end < 0 {
			end = len(after)
		}
		r.parts = append(r.parts, templatePart{variable: after[:end]})
		source = after[end:]
	}
	return r
}

// answer writes the gateway response of a refusal.
func (x *exchange) answer(refused *refusal) {
	r := x.responses[refused.kind]
	header := x.w.Header()
	for name, expression := range r.headers {
		if value := x.mapped(expression, refused); value != "" {
			header.Set(name, value)
		}
	}
	var body strings.Builder
	for _, p := range r.parts {
		body.WriteString(p.text)
		if p.variable != "" {
			body.WriteString(x.variable(p.variable, refused))
		}
	}
	header.Set("Content-Type", r.mediaType)
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	x.w.WriteHeader(cmp.Or(r.status, refused.status))
	if x.r.Method != http.MethodHead {
		// An error means that the client has gone.
		_, _ = x.w.Write([]byte(body.String()))
	}
}

// mapped evaluates the value of a header: a text in single quotes, a variable of the context or a header of the
// request.
func (x *exchange) mapped(expression string, refused *refusal) string {
	if literal, ok := strings.CutPrefix(expression, "'"); ok {
		return strings.TrimSuffix(literal, "'")
	}
	if variable, ok := strings.CutPrefix(expression, "context."); ok {
		return x.variable(variable, refused)
	}
	if name, ok := strings.CutPrefix(expression, "method.request.header."); ok {
		return x.r.Header.Get(name)
	}
	return ""
}

// variable returns a variable of the context, "" for one that is not set.
func (x *exchange) variable(name string, refused *refusal) string {
	if key, ok := strings.CutPrefix(name, "authorizer."); ok {
		return x.authorizer[key]
	}
	c := &x.event.RequestContext
	switch name {
	case "requestId", "extendedRequestId":
		return x.id
	case "error.message":
		return refused.message
	case "error.messageString":
		quoted, _ := json.Marshal(refused.message) // a constant of ours
		return string(quoted)
	case "error.responseType":
		return refused.kind
	case "httpMethod":
		return x.r.Method
	case "path":
		return c.Path
	case "resourcePath":
		return c.ResourcePath
	case "stage":
		return x.api.Stage
	case "requestTime":
		return c.RequestTime
	case "requestTimeEpoch":
		return strconv.FormatInt(x.start.UnixMilli(), 10)
	case "identity.sourceIp":
		return c.Identity.SourceIP
	case "identity.userAgent":
		return c.Identity.UserAgent
	}
	return ""
}
