package gateway

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The account and API that events name.
const (
	accountID = "000000000000"
	apiID     = "local"
	region    = "local"
)

// event holds the members that the payloads of authorizers and functions share. Its members are null where API Gateway sends
// null.
type event struct {
	Resource                        string              `json:"resource"`
	Path                            string              `json:"path"`
	HTTPMethod                      string              `json:"httpMethod"`
	Headers                         map[string]string   `json:"headers"`
	MultiValueHeaders               map[string][]string `json:"multiValueHeaders"`
	QueryStringParameters           map[string]string   `json:"queryStringParameters"`
	MultiValueQueryStringParameters map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters                  map[string]string   `json:"pathParameters"`
	StageVariables                  map[string]string   `json:"stageVariables"`
	RequestContext                  requestContext      `json:"requestContext"`
}

type requestContext struct {
	AccountID         string            `json:"accountId"`
	APIID             string            `json:"apiId"`
	Authorizer        map[string]string `json:"authorizer,omitempty"`
	DomainName        string            `json:"domainName"`
	DomainPrefix      string            `json:"domainPrefix"`
	ExtendedRequestID string            `json:"extendedRequestId"`
	HTTPMethod        string            `json:"httpMethod"`
	Identity          identity          `json:"identity"`
	Path              string            `json:"path"`
	Protocol          string            `json:"protocol"`
	RequestID         string            `json:"requestId"`
	RequestTime       string            `json:"requestTime"`
	RequestTimeEpoch  int64             `json:"requestTimeEpoch"` // ms
	ResourceID        string            `json:"resourceId"`
	ResourcePath      string            `json:"resourcePath"`
	Stage             string            `json:"stage"`
}

type identity struct {
	AccessKey *string `json:"accessKey"`
	AccountID *string `json:"accountId"`
	Caller    *string `json:"caller"`
	SourceIP  string  `json:"sourceIp"`
	User      *string `json:"user"`
	UserAgent string  `json:"userAgent"`
	UserARN   *string `json:"userArn"`
}

// authorizerEvent is the payload of a REQUEST authorizer.
type authorizerEvent struct {
	Type      string `json:"type"`
	MethodARN string `json:"methodArn"`
	event
}

// functionEvent is the payload of a function.
type functionEvent struct {
	event
	Body            *string `json:"body"`
	IsBase64Encoded bool    `json:"isBase64Encoded"`
}

func (x *exchange) newEvent(path string, parameters []parameter) event {
	host, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		host = x.r.RemoteAddr
	}
	e := event{
		Resource:          x.route.Path,
		Path:              path,
		HTTPMethod:        x.r.Method,
		MultiValueHeaders: x.headers(host),
		RequestContext: requestContext{
			AccountID:         accountID,
			APIID:             apiID,
			DomainName:        x.r.Host,
			DomainPrefix:      strings.SplitN(x.r.Host, ".", 2)[0],
			ExtendedRequestID: x.id,
			HTTPMethod:        x.r.Method,
			Identity:          identity{SourceIP: host, UserAgent: x.r.UserAgent()},
			Path:              path,
			Protocol:          x.r.Proto,
			RequestID:         x.id,
			RequestTime:       x.start.UTC().Format("02/Jan/2006:15:04:05 -0700"),
			RequestTimeEpoch:  x.start.UnixMilli(),
			ResourceID:        x.route.Path,
			ResourcePath:      x.route.Path,
			Stage:             x.api.Stage,
		},
	}
	e.Headers = last(e.MultiValueHeaders)
	if x.r.URL.RawQuery != "" {
		e.MultiValueQueryStringParameters = query(x.r.URL.RawQuery)
		e.QueryStringParameters = last(e.MultiValueQueryStringParameters)
	}
	if len(parameters) > 0 {
		e.PathParameters = make(map[string]string, len(parameters))
		for _, p := range parameters {
			e.PathParameters[p.name] = p.value
		}
	}
	return e
}

// headers returns the request's as functions see them: with Host and the X-Forwarded ones, without those that concern
// the connection.
func (x *exchange) headers(client string) map[string][]string {
	headers := make(map[string][]string, len(x.r.Header)+4)
	for name, values := range x.r.Header {
		switch name {
		case "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		default:
			headers[name] = values
		}
	}
	scheme, port := "http", "80"
	if x.r.TLS != nil {
		scheme, port = "https", "443"
	}
	if _, own, err := net.SplitHostPort(x.r.Host); err == nil {
		port = own
	}
	forwarded := client
	if before := x.r.Header.Values("X-Forwarded-For"); len(before) > 0 {
		forwarded = strings.Join(before, ", ") + ", " + client
	}
	headers["Host"] = []string{x.r.Host}
	headers["X-Forwarded-For"] = []string{forwarded}
	headers["X-Forwarded-Port"] = []string{port}
	headers["X-Forwarded-Proto"] = []string{scheme}
	return headers
}

// query decodes a query string. A part that cannot be decoded is passed on as it is: whether it is a fault is the
// function's to say.
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
		return decoded
	}
	return text
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

// payload renders the event of a function.
func (x *exchange) payload(body []byte) ([]byte, error) {
	e := functionEvent{event: x.event}
	e.RequestContext.Authorizer = x.authorizer
	if len(body) > 0 {
		var text string
		text, e.IsBase64Encoded = x.bodyText(body)
		e.Body = &text
	}
	payload, err := marshal(e)
	if err == nil && len(payload) > maxPayload {
		return nil, refuse("REQUEST_TOO_LARGE", "Request Too Long", nil)
	}
	return payload, err
}

// isBinary reports whether bodies of a media type travel in base64.
func (x *exchange) isBinary(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.TrimSpace(mediaType)
	for _, binary := range x.api.BinaryMediaTypes {
		if binary == "*/*" || strings.EqualFold(binary, mediaType) {
			return true
		}
	}
	return false
}

// methodARN names the request for a policy.
func (x *exchange) methodARN() string {
	return "arn:aws:execute-api:" + region + ":" + accountID + ":" + apiID + "/" + x.api.Stage + "/" + x.r.Method + strings.TrimPrefix(x.event.Path, x.cfg.BasePath)
}

// marshal writes absent maps as null, as API Gateway does. What a client sent in its headers or query need not be
// UTF-8, but an event is: the bytes that are not become U+FFFD.
func marshal(v any) ([]byte, error) {
	payload, err := json.Marshal(v, json.FormatNilMapAsNull(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return payload, nil
}

// first returns the first media type of an Accept header, "" without one.
func first(accept string) string {
	mediaType, _, _ := strings.Cut(accept, ",")
	return mediaType
}
