// Package gateway answers HTTP as API Gateway's REST API would for the same template: it matches routes, asks
// authorizers, gives functions the proxy event that Lambda gets and turns their answers, or the gateway's own refusals,
// into HTTP. It follows the rules that a client or a function can observe, among them the surprising ones: headers
// renamed, bodies in base64, policies cached. The [Invoker] runs the functions, with their timeouts. Throttling, usage
// plans, identity sources other than headers, the wildcard ? of policies and most variables of response templates are
// left out.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"

	"github.com/commerce-integration/service/pkg/local/template"
)

// Limits of API Gateway and of Lambda behind it.
const (
	maxRequestBody = 10 << 20 // bytes of a request's body
	maxPayload     = 6291556  // bytes of an invocation's payload and of its answer
	maxWait        = 29 * time.Second
)

// Invoker runs a function by its name with a JSON payload and returns its JSON answer. An error means that the function
// failed. It returns when ctx is done, at the latest.
type Invoker func(ctx context.Context, function string, payload []byte) ([]byte, error)

// Direct calls a function of this process with its event, an [events.APIGatewayProxyRequest] or an
// [events.APIGatewayCustomAuthorizerRequestTypeRequest], and returns its answer in its type, without JSON between them.
// The event's maps must only be read. ok is false, and nothing was called, when the function takes another type.
type Direct func(ctx context.Context, function string, event any) (answer any, ok bool, err error)

// Config holds settings with defaults.
type Config struct {
	Clock   func() time.Time // default time.Now
	Logger  *slog.Logger     // of failures; default slog.Default
	Timeout time.Duration    // of an integration; default 29 s, API Gateway's own
	Direct  Direct           // calls functions of this process; nil when there are none
	// BasePath is that of the mapping from a domain of one's own, such as /v1. Below it the routes are, and events have
	// it in their paths. "" for none.
	BasePath string
}

// Gateway is an http.Handler. It is safe for concurrent use.
type Gateway struct {
	api      template.API
	invoke   Invoker
	cfg      Config
	routes   *routes
	policies *policyCache
}

// New makes the handler of the model's API. The stage is at the root: paths have no prefix.
func New(model *template.Model, invoke Invoker, cfg *Config) *Gateway {
	g := &Gateway{api: model.API, invoke: invoke, routes: newRoutes(model.API.Routes)}
	if cfg != nil {
		g.cfg = *cfg
	}
	if g.cfg.Clock == nil {
		g.cfg.Clock = time.Now
	}
	g.cfg.Logger = cmp.Or(g.cfg.Logger, slog.Default())
	g.cfg.Timeout = cmp.Or(g.cfg.Timeout, maxWait)
	g.policies = &policyCache{clock: g.cfg.Clock, decisions: map[string]cachedDecision{}}
	return g
}

// exchange is one request on its way through the gateway.
type exchange struct {
	*Gateway
	w     http.ResponseWriter
	r     *http.Request
	id    string
	start time.Time
	route template.Route
	event events.APIGatewayProxyRequest
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Gateway: g, w: w, r: r, id: uuid.NewString(), start: g.cfg.Clock()}
	w.Header().Set("X-Amzn-Requestid", x.id)
	err := x.run()
	if err == nil {
		return
	}
	var refused *refusal
	if !errors.As(err, &refused) {
		refused = broken(err)
	}
	if refused.cause != nil {
		g.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "gateway",
			slog.String("requestId", x.id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("function", x.route.Function), slog.String("responseType", refused.kind),
			slog.Any("error", refused.cause))
	}
	x.refuse(refused)
}

func (x *exchange) run() error {
	path := requestPath(x.r)
	below, mapped := strings.CutPrefix(path, x.cfg.BasePath)
	route, parameters, ok := x.routes.match(x.r.Method, below)
	if !ok || !mapped {
		return &refusal{kind: "MISSING_AUTHENTICATION_TOKEN"}
	}
	x.route = route
	body, err := x.body()
	if err != nil {
		return err
	}
	x.event = x.newEvent(path, parameters)
	if route.Authorizer != "" {
		if err := x.authorize(x.api.Authorizers[route.Authorizer]); err != nil {
			return err
		}
	}
	return x.integrate(body)
}

// requestPath is the path as it was sent, in its escaped form: that is what API Gateway matches and passes on. Slashes
// at the start count as one.
func requestPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, "//") || path == "" {
		path = "/" + strings.TrimLeft(path, "/")
	}
	return path
}

func (x *exchange) body() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(x.r.Body, maxRequestBody+1))
	switch {
	case err != nil:
		return nil, &refusal{kind: "BAD_REQUEST_BODY"}
	case len(body) > maxRequestBody:
		return nil, errTooLarge
	}
	return body, nil
}
