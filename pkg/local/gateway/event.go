package gateway

import (
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// The account and API that events name.
const (
	accountID = "000000000000"
	apiID     = "local"
	region    = "local"
)

// newEvent returns the event of a function, without the body and the authorizer's context.
func (x *exchange) newEvent(path string, parameters map[string]string) events.APIGatewayProxyRequest {
	client, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		client = x.r.RemoteAddr
	}
	domain, _, _ := strings.Cut(x.r.Host, ".")
	e := events.APIGatewayProxyRequest{
		Resource: x.route.Path, Path: path, HTTPMethod: x.r.Method,
		MultiValueHeaders: x.headers(client), PathParameters: parameters,
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: accountID, APIID: apiID, Stage: x.api.Stage,
			ResourceID: x.route.Path, ResourcePath: x.route.Path, Path: path, HTTPMethod: x.r.Method,
			DomainName: x.r.Host, DomainPrefix: domain, Protocol: x.r.Proto,
			RequestID: x.id, ExtendedRequestID: x.id,
			RequestTime: x.start.UTC().Format("02/Jan/2006:15:04:05 -0700"), RequestTimeEpoch: x.start.UnixMilli(),
			Identity: events.APIGatewayRequestIdentity{SourceIP: client, UserAgent: utf8Text(x.r.UserAgent())},
		},
	}
	e.Headers = last(e.MultiValueHeaders)
	if x.r.URL.RawQuery != "" {
		e.MultiValueQueryStringParameters = query(x.r.URL.RawQuery)
		e.QueryStringParameters = last(e.MultiValueQueryStringParameters)
	}
	return e
}

// utf8Text replaces invalid UTF-8: a client's headers and query need not be, but an event is.
func utf8Text(text string) string {
	if utf8.ValidString(text) { // faster than to replace nothing
		return text
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// headers returns the request's as functions see them: with Host and the X-Forwarded ones, without those that concern
// the connection.
func (x *exchange) headers(client string) map[string][]string {
	headers := make(map[string][]string, len(x.r.Header)+4)
	for name, values := range x.r.Header {
		switch name {
		case "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		default:
			for _, value := range values {
				headers[name] = append(headers[name], utf8Text(value))
			}
		}
	}
	port := "80"
	if _, own, err := net.SplitHostPort(x.r.Host); err == nil {
		port = own
	}
	headers["Host"] = []string{x.r.Host}
	headers["X-Forwarded-For"] = []string{strings.Join(append(headers["X-Forwarded-For"], client), ", ")}
	headers["X-Forwarded-Port"] = []string{port}
	headers["X-Forwarded-Proto"] = []string{"http"}
	return headers
}

// query decodes a query string. A part that cannot be decoded is passed on as it is, for the function to refuse.
func query(raw string) map[string][]string {
	values := map[string][]string{}
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, value = unescaped(name), unescaped(value)
		values[name] = append(values[name], value)
	}
	return values
}

func unescaped(text string) string {
	if decoded, err := url.QueryUnescape(text); err == nil {
		text = decoded
	}
	return utf8Text(text)
}

// last keeps the last value of each name, as API Gateway does where an event has room for one.
func last(values map[string][]string) map[string]string {
	single := make(map[string]string, len(values))
	for name, all := range values {
		if len(all) > 0 {
			single[name] = all[len(all)-1]
		}
	}
	return single
}

// methodARN names the request for a policy.
func (x *exchange) methodARN() string {
	return "arn:aws:execute-api:" + region + ":" + accountID + ":" + apiID + "/" + x.api.Stage + "/" + x.r.Method + strings.TrimPrefix(x.event.Path, x.cfg.BasePath)
}

// authorizerEvent returns the event of a REQUEST authorizer.
func (x *exchange) authorizerEvent() events.APIGatewayCustomAuthorizerRequestTypeRequest {
	e, c := &x.event, &x.event.RequestContext
	return events.APIGatewayCustomAuthorizerRequestTypeRequest{
		Type: "REQUEST", MethodArn: x.methodARN(), Resource: e.Resource, Path: e.Path, HTTPMethod: e.HTTPMethod,
		Headers: e.Headers, MultiValueHeaders: e.MultiValueHeaders, PathParameters: e.PathParameters,
		QueryStringParameters: e.QueryStringParameters, MultiValueQueryStringParameters: e.MultiValueQueryStringParameters,
		RequestContext: events.APIGatewayCustomAuthorizerRequestTypeRequestContext{
			Path: c.Path, AccountID: c.AccountID, ResourceID: c.ResourceID, Stage: c.Stage, RequestID: c.RequestID,
			Identity:     events.APIGatewayCustomAuthorizerRequestTypeRequestIdentity{SourceIP: c.Identity.SourceIP},
			ResourcePath: c.ResourcePath, HTTPMethod: c.HTTPMethod, APIID: c.APIID,
		},
	}
}
