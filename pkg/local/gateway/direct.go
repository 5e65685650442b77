package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// Direct calls a function of this process with an event of the type that it takes and returns the answer in the type
// that it returns, without JSON text between them. The event is an [events.APIGatewayProxyRequest] or an
// [events.APIGatewayCustomAuthorizerRequestTypeRequest]; its maps are the gateway's and must only be read. ok is false,
// and nothing was called, when the function takes another type. Otherwise it is an [Invoker].
//
// The gateway uses it for events and answers that are the same on both sides of JSON, and the Invoker for others: those
// with invalid UTF-8, which JSON cannot hold, and those that may exceed the limits of a payload.
type Direct func(ctx context.Context, function string, event any) (answer any, ok bool, err error)

// maxEscape is how many bytes of JSON a byte of text becomes at most.
const maxEscape = 6

// overhead is more than the names and the fixed members of an event take.
const overhead = 4 << 10

// estimate is an upper bound of the bytes that texts take as JSON.
type estimate struct {
	bytes   int
	invalid bool // some text is not UTF-8
}

func (e *estimate) add(texts ...string) {
	for _, text := range texts {
		e.bytes += len(text)*maxEscape + 4
		e.invalid = e.invalid || !utf8.ValidString(text)
	}
}

func (e *estimate) addMap(values map[string]string) {
	for name, value := range values {
		e.add(name, value)
	}
}

func (e *estimate) addLists(values map[string][]string) {
	for name, all := range values {
		e.add(name)
		e.add(all...)
	}
}

// passes reports whether the payload is the same on both sides of JSON, and surely within its limit.
func (e *estimate) passes() bool { return !e.invalid && e.bytes+overhead < maxPayload }

// estimate estimates the members that every payload made from the event has.
func (e *event) estimate() estimate {
	var sum estimate
	sum.addLists(e.MultiValueHeaders)
	sum.addLists(e.MultiValueQueryStringParameters)
	sum.bytes *= 2                          // the members with one value for each name repeat them
	sum.add(e.Path, e.Path, e.Path, e.Path) // also in the context, the method's ARN and the path parameters
	sum.add(e.RequestContext.DomainName, e.RequestContext.Identity.UserAgent, e.RequestContext.Identity.SourceIP)
	return sum
}

// sameAsJSON reports whether the function can get the event of this exchange without JSON.
func (x *exchange) sameAsJSON(body []byte) bool {
	if x.cfg.Direct == nil {
		return false
	}
	if x.estimated == (estimate{}) {
		x.estimated = x.event.estimate()
	}
	e := x.estimated
	e.addMap(x.authorizer)
	e.bytes += len(body) * maxEscape
	return e.passes() && utf8.Valid(body)
}

// invocation is one call of a function.
type invocation struct {
	function string
	body     []byte                 // of the request that the event contains
	event    func() any             // the event as a [Direct] function gets it
	payload  func() ([]byte, error) // the event as JSON
	// take takes the answer of a [Direct] function, or reports that it is not the same on both sides of JSON.
	take func(answer any) bool
}

// call calls a function within the gateway's own time limit. It returns the answer as JSON unless the invocation took
// it. A client that hangs up does not end the call: Lambda would run on, too.
func (x *exchange) call(i invocation) (answer []byte, taken bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.cfg.Timeout)
	defer cancel()
	given, direct := any(nil), false
	if x.sameAsJSON(i.body) {
		given, direct, err = x.cfg.Direct(ctx, i.function, i.event())
	}
	if !direct && err == nil {
		var payload []byte
		if payload, err = i.payload(); err == nil {
			answer, err = x.invoke(ctx, i.function, payload)
		}
	}
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("invoke %s: %w", i.function, ctx.Err())
	}
	if err != nil {
		return nil, false, err
	}
	if direct && i.take(given) {
		return nil, true, nil
	}
	if direct {
		// As Lambda's library writes it.
		handler := lambda.NewHandler(func() (any, error) { return given, nil })
		if answer, err = handler.Invoke(context.Background(), []byte("null")); err != nil {
			return nil, false, err
		}
	}
	if len(answer) > maxPayload {
		return nil, false, fmt.Errorf("answer of %s has %d bytes, more than %d", i.function, len(answer), maxPayload)
	}
	return answer, false, nil
}

// proxyRequest returns what Lambda's library reads from the payload of a function.
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

// authorizerRequest returns what Lambda's library reads from the payload of an authorizer.
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

// bodyText returns a body as an event contains it.
func (x *exchange) bodyText(body []byte) (text string, isBase64 bool) {
	if len(body) > 0 && x.isBinary(x.r.Header.Get("Content-Type")) {
		return base64.StdEncoding.EncodeToString(body), true
	}
	return string(body), false
}

// proxyAnswer reads the answer of a function. same is false when JSON would change it, or make it too long.
func proxyAnswer(given any) (answer functionAnswer, same bool) {
	response, known := given.(events.APIGatewayProxyResponse)
	var e estimate
	e.add(response.Body)
	e.addMap(response.Headers)
	e.addLists(response.MultiValueHeaders)
	return functionAnswer(response), known && e.passes()
}

// decisionOf reads the answer of an authorizer, if it has nothing special: a context of texts. same is false for
// others.
func decisionOf(given any) (d decision, same bool) {
	response, known := given.(events.APIGatewayCustomAuthorizerResponse)
	var e estimate
	e.add(response.PrincipalID)
	d.context = make(map[string]string, len(response.Context)+1)
	for name, v := range response.Context {
		text, ok := v.(string)
		if !ok {
			return decision{}, false
		}
		e.add(name, text)
		d.context[name] = text
	}
	d.context["principalId"] = response.PrincipalID
	d.policy.Version = response.PolicyDocument.Version
	for _, s := range response.PolicyDocument.Statement {
		e.add(s.Effect)
		e.add(s.Action...)
		e.add(s.Resource...)
		d.policy.Statement = append(d.policy.Statement, statement{Effect: s.Effect, Action: s.Action, Resource: s.Resource})
	}
	return d, known && e.passes() && response.PrincipalID != "" && d.policy.check() == nil
}
