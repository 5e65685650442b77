package app

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// gatewayFunc puts an HTTP handler behind API Gateway's proxy events. Below a
// domain of one's own, paths may begin with a base path.
func gatewayFunc(handler http.Handler, basePath string) GatewayFunc {
	adapter := httpadapter.New(handler)
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		event.Path = escapedPath(withoutBasePath(event, basePath))
		return adapter.ProxyWithContext(ctx, event)
	}
}

// withoutBasePath returns the event's path as routes have it: API Gateway
// leaves the base path in it. Below the API's own domain there is none, and the
// context's path begins with the stage.
func withoutBasePath(event events.APIGatewayProxyRequest, basePath string) string {
	own := event.RequestContext.Path == "/"+event.RequestContext.Stage+event.Path
	rest, found := strings.CutPrefix(event.Path+"/", "/"+basePath+"/")
	if own || !found || basePath == "" {
		return event.Path
	}
	return "/" + strings.TrimSuffix(rest, "/")
}

// escapedPath makes any path one that parses: the adapter fails the whole
// invocation on a path such as "/%", which a client can send as "/%25".
func escapedPath(path string) string {
	if _, err := url.Parse("https://host" + path); err == nil && strings.HasPrefix(path, "/") {
		return path
	}
	return (&url.URL{Path: path}).EscapedPath()
}

// callerOf reads the principal from the authorizer's context and from nothing
// else: a client can forge every header, also those that the adapter would
// write for handlers that read the context from headers. The credential of the
// request must be the one that the authorizer judged.
func callerOf(r *http.Request) api.Caller {
	gateway, ok := core.GetAPIGatewayContextFromContext(r.Context())
	caller := api.Caller{RequestID: requestID(r.Context()), BaseURL: baseURL(r, gateway)}
	if !ok {
		caller.Err = auth.ErrNoPrincipal
		return caller
	}
	caller.SourceAddress = gateway.Identity.SourceIP
	caller.Principal, caller.Err = auth.PrincipalOf(gateway.Authorizer, r.Header)
	return caller
}

// requestID is Lambda's own, which is unique under every host; the gateway's
// is one and the same for all requests under some emulators.
func requestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return lc.AwsRequestID
	}
	return value.NewRandomID().String()
}

// baseURL is what the client sees in front of a path: the context's path has
// the stage or the base path, the request's has neither.
func baseURL(r *http.Request, gateway events.APIGatewayProxyRequestContext) string {
	scheme := "https"
	if r.Header.Get("X-Forwarded-Proto") == "http" { // locally; nothing else that a client may send counts
		scheme = "http"
	}
	host := cmp.Or(r.Header.Get("Host"), gateway.DomainName)
	prefix, found := strings.CutSuffix(gateway.Path, r.URL.Path)
	if !found {
		prefix = ""
	}
	return scheme + "://" + host + prefix
}
