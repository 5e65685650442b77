package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// Direct calls a function of this process with an event in the type that it
// takes and returns its answer in the type that it gives, which spares both
// the JSON text between them. The event is an [events.APIGatewayProxyRequest]
// or an [events.APIGatewayCustomAuthorizerRequestTypeRequest]; its maps are
// the gateway's, to be read only. ok is false, and nothing was called, when
// the function takes another type. For the rest it is an [Invoker].
//
// The gateway uses it for events and answers that are the same on both sides
// of JSON, and the Invoker for others: what no text of JSON can hold, and what
// may pass the limits of a payload.
type Direct func(ctx context.Context, function string, event any) (answer any, ok bool, err error)

// maxEscape is how many bytes of JSON a byte of text becomes at most.
const maxEscape = 6

// budget adds up what a payload may take as JSON text.
type budget struct {
	bytes   int
	invalid bool // some text is not UTF-8
}

func (b *budget) text(s string) {
	b.bytes += len(s)*maxEscape + 4
	b.invalid = b.invalid || !utf8.ValidString(s)
}

func (b *budget) one(values map[string]string) {
	for name, v := range values {
		b.text(name)
		b.text(v)
	}
}

func (b *budget) many(values map[string][]string) {
	for name, all := range values {
		b.text(name)
		for _, v := range all {
			b.text(v)
		}
	}
}

// passes reports whether the payload is the same on both sides of JSON, and
// surely within its limit.
func (b *budget) passes() bool { return !b.invalid && b.bytes < maxPayload }

// overhead is more than the names and the fixed members of an event take.
const overhead = 4 << 10

// measure adds up what the event takes in every payload made from it.
func (e *event) measure() budget {
	b := budget{bytes: overhead}
	b.many(e.MultiValueHeaders)
	b.one(e.Headers)
	b.many(e.MultiValueQueryStringParameters)
	b.one(e.QueryStringParameters)
	b.one(e.PathParameters)
	b.text(e.Path)
	b.bytes += 2 * len(e.Path) * maxEscape // in the context and in the name of the method
	b.text(e.RequestContext.DomainName)
	b.text(e.RequestContext.Identity.UserAgent)
	b.text(e.RequestContext.Identity.SourceIP)
	return b
}

// direct reports whether the event of this exchange can spare JSON.
func (x *exchange) direct(body []byte) bool {
	if x.cfg.Direct == nil {
		return false
	}
	if x.measured.bytes == 0 {
		x.measured = x.event.measure()
	}
	b := x.measured
	b.one(x.authorizer)
	b.bytes += len(body) * maxEscape
	return b.passes() && utf8.Valid(body)
}

// proxyRequest is what Lambda's library reads from the payload of a function.
func (x *exchange) proxyRequest(body []byte) events.APIGatewayProxyRequest {
	e, c := &x.event, &x.event.RequestContext
	request := events.APIGatewayProxyRequest{
		Resource: e.Resource, Path: e.Path, HTTPMethod: e.HTTPMethod,
		Headers: e.Headers, MultiValueHeaders: e.MultiValueHeaders,
		QueryStringParameters: e.QueryStringParameters, MultiValueQueryStringParameters: e.MultiValueQueryStringParameters,
		PathParameters: e.PathParameters, StageVariables: e.StageVariables,
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: c.AccountID, ResourceID: c.ResourceID, Stage: c.Stage, DomainName: c.DomainName, DomainPrefix: c.DomainPrefix,
			RequestID: c.RequestID, ExtendedRequestID: c.ExtendedRequestID, Protocol: c.Protocol,
			Identity:     events.APIGatewayRequestIdentity{SourceIP: c.Identity.SourceIP, UserAgent: c.Identity.UserAgent},
			ResourcePath: c.ResourcePath, Path: c.Path, HTTPMethod: c.HTTPMethod,
			RequestTime: c.RequestTime, RequestTimeEpoch: c.RequestTimeEpoch, APIID: c.APIID,
		},
	}
	if len(x.authorizer) > 0 {
		request.RequestContext.Authorizer = make(map[string]any, len(x.authorizer))
		for name, v := range x.authorizer {
			request.RequestContext.Authorizer[name] = v
		}
	}
	request.Body, request.IsBase64Encoded = x.bodyText(body)
	return request
}

// authorizerRequest is what Lambda's library reads from the payload of an
// authorizer.
func (x *exchange) authorizerRequest() events.APIGatewayCustomAuthorizerRequestTypeRequest {
	e, c := &x.event, &x.event.RequestContext
	return events.APIGatewayCustomAuthorizerRequestTypeRequest{
		Type: "REQUEST", MethodArn: x.methodARN(), Resource: e.Resource, Path: e.Path, HTTPMethod: e.HTTPMethod,
		Headers: e.Headers, MultiValueHeaders: e.MultiValueHeaders,
		QueryStringParameters: e.QueryStringParameters, MultiValueQueryStringParameters: e.MultiValueQueryStringParameters,
		PathParameters: e.PathParameters, StageVariables: e.StageVariables,
		RequestContext: events.APIGatewayCustomAuthorizerRequestTypeRequestContext{
			Path: c.Path, AccountID: c.AccountID, ResourceID: c.ResourceID, Stage: c.Stage, RequestID: c.RequestID,
			Identity:     events.APIGatewayCustomAuthorizerRequestTypeRequestIdentity{SourceIP: c.Identity.SourceIP},
			ResourcePath: c.ResourcePath, HTTPMethod: c.HTTPMethod, APIID: c.APIID,
		},
	}
}

// bodyText is a body as it travels in an event.
func (x *exchange) bodyText(body []byte) (text string, isBase64 bool) {
	if len(body) > 0 && x.isBinary(x.r.Header.Get("Content-Type")) {
		return base64.StdEncoding.EncodeToString(body), true
	}
	return string(body), false
}

// askDirectly calls the route's function without JSON. ok is false when that
// is not possible.
func (x *exchange) askDirectly(body []byte) (answer functionAnswer, ok bool, err error) {
	if !x.direct(body) {
		return answer, false, nil
	}
	var given any
	err = x.within(x.route.Function, func(ctx context.Context) (err error) {
		given, ok, err = x.cfg.Direct(ctx, x.route.Function, x.proxyRequest(body))
		return err
	})
	if !ok || err != nil {
		return answer, ok, err
	}
	response, known := given.(events.APIGatewayProxyResponse)
	if !known {
		answer, err = x.throughJSON(given)
		return answer, true, err
	}
	b := budget{bytes: overhead}
	b.text(response.Body)
	b.one(response.Headers)
	b.many(response.MultiValueHeaders)
	if !b.passes() {
		answer, err = x.throughJSON(response)
		return answer, true, err
	}
	return functionAnswer(response), true, nil
}

// throughJSON takes an answer as it arrives from Lambda.
func (x *exchange) throughJSON(given any) (functionAnswer, error) {
	raw, err := asText(given)
	if err == nil {
		err = checkSize(x.route.Function, raw)
	}
	if err != nil {
		return functionAnswer{}, err
	}
	return readAnswer(raw)
}

// asText is an answer as Lambda's library writes it.
func asText(given any) ([]byte, error) {
	return lambda.NewHandler(func() (any, error) { return given, nil }).Invoke(context.Background(), []byte("null"))
}

// decideDirectly asks an authorizer without JSON. ok is false when that is
// not possible.
func (x *exchange) decideDirectly(function string) (d decision, ok bool, err error) {
	if !x.direct(nil) {
		return d, false, nil
	}
	var given any
	err = x.within(function, func(ctx context.Context) (err error) {
		given, ok, err = x.cfg.Direct(ctx, function, x.authorizerRequest())
		return err
	})
	if !ok || err != nil {
		return d, ok, err
	}
	if response, known := given.(events.APIGatewayCustomAuthorizerResponse); known {
		if d, plain := decisionOf(&response); plain {
			return d, true, nil
		}
	}
	raw, err := asText(given)
	if err != nil {
		return d, true, err
	}
	d, err = readDecision(raw)
	if err != nil {
		err = &misread{fmt.Errorf("answer of %s: %w", function, err)}
	}
	return d, true, err
}

// misread is an answer of an authorizer that the gateway cannot use.
type misread struct{ error }

// decisionOf reads an authorizer's answer that has nothing special: a
// context of texts. plain is false for others.
func decisionOf(response *events.APIGatewayCustomAuthorizerResponse) (d decision, plain bool) {
	b := budget{bytes: overhead}
	b.text(response.PrincipalID)
	d.context = make(map[string]string, len(response.Context)+1)
	for name, v := range response.Context {
		text, ok := v.(string)
		if !ok {
			return decision{}, false
		}
		b.text(name)
		b.text(text)
		d.context[name] = text
	}
	d.context["principalId"] = response.PrincipalID
	d.policy.Version = response.PolicyDocument.Version
	for _, s := range response.PolicyDocument.Statement {
		b.text(s.Effect)
		for _, texts := range [][]string{s.Action, s.Resource} {
			for _, text := range texts {
				b.text(text)
			}
		}
		d.policy.Statement = append(d.policy.Statement, statement{Effect: s.Effect, Action: s.Action, Resource: s.Resource})
	}
	return d, b.passes() && response.PrincipalID != "" && d.policy.check() == nil
}
