package template

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// byPath are the routes by path and method.
func byPath(m *Model) map[string]map[string]Route {
	methods := map[string]map[string]Route{}
	for _, r := range m.API.Routes {
		if methods[r.Path] == nil {
			methods[r.Path] = map[string]Route{}
		}
		methods[r.Path][r.Method] = r
	}
	return methods
}

// A local run knows these kinds only, and takes them for granted.
func TestAuthorizersTakeRequestsAndIntegrationsAreProxies(t *testing.T) {
	service, _ := templates(t)
	api := at(service, "Resources", "Api", "Properties")
	if types, _ := at(api, "BinaryMediaTypes").([]any); !slices.Equal(types, []any{"*~1*"}) {
		t.Errorf("binary media types %v, want all", types)
	}
	for name, authorizer := range below(api, "Auth", "Authorizers") {
		if kind := textAt(authorizer, "FunctionPayloadType"); kind != "REQUEST" {
			t.Errorf("%s is of type %q", name, kind)
		}
	}
	for path, methods := range below(api, "DefinitionBody", "paths") {
		for method, operation := range methods.(tree) {
			if kind := textAt(operation, "x-amazon-apigateway-integration", "type"); kind != "aws_proxy" {
				t.Errorf("%s %s: integration of type %q", method, path, kind)
			}
		}
	}
}

// API Gateway refuses two parameters of different names in the same place.
func TestSiblingPathParametersHaveOneName(t *testing.T) {
	names := map[string]string{}
	for _, r := range stack(t).API.Routes {
		segments := strings.Split(r.Path, "/")
		for i, segment := range segments {
			if !strings.HasPrefix(segment, "{") || strings.HasSuffix(segment, "+}") {
				continue
			}
			parent := strings.Join(segments[:i], "/")
			if before := names[parent]; before != "" && before != segment {
				t.Errorf("below %s: both %s and %s", parent, before, segment)
			}
			names[parent] = segment
		}
	}
}

// responseTypes are all types of gateway responses.
func responseTypes() []string {
	return []string{
		"ACCESS_DENIED", "API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR", "AUTHORIZER_FAILURE", "BAD_REQUEST_BODY",
		"BAD_REQUEST_PARAMETERS", "DEFAULT_4XX", "DEFAULT_5XX", "EXPIRED_TOKEN", "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT",
		"INVALID_API_KEY", "INVALID_SIGNATURE", "MISSING_AUTHENTICATION_TOKEN", "QUOTA_EXCEEDED", "REQUEST_TOO_LARGE",
		"RESOURCE_NOT_FOUND", "THROTTLED", "UNAUTHORIZED", "UNSUPPORTED_MEDIA_TYPE", "WAF_FILTERED",
	}
}

func TestEveryGatewayResponseIsDeclaredInTheErrorShape(t *testing.T) {
	responses := stack(t).API.Responses
	if diff := cmp.Diff(responseTypes(), slices.Sorted(maps.Keys(responses))); diff != "" {
		t.Errorf("types of gateway responses (-want +declared):\n%s", diff)
	}
	for name, response := range responses {
		var body struct {
			StatusCode int    `json:"statusCode"`
			Error      string `json:"error"`
			Code       string `json:"code"`
			Message    string `json:"message"`
			Details    []any  `json:"details"`
			RequestID  string `json:"requestId"`
		}
		text := response.Templates["application/json"]
		if err := json.Unmarshal([]byte(text), &body, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
			continue
		}
		if body.StatusCode != response.Status || body.Error == "" || body.Code == "" || body.Message == "" || body.Details == nil {
			t.Errorf("%s: status %d, body %s", name, response.Status, text)
		}
		if body.RequestID != "$context.requestId" || response.Parameters.Headers["X-Request-Id"] != "context.requestId" || response.Parameters.Headers["X-Content-Type-Options"] != "'nosniff'" {
			t.Errorf("%s: request id or nosniff is missing from %s or %v", name, text, response.Parameters.Headers)
		}
		if challenge := response.Parameters.Headers["WWW-Authenticate"]; (challenge == "'Bearer'") != (response.Status == 401) {
			t.Errorf("%s: status %d with WWW-Authenticate %q", name, response.Status, challenge)
		}
		if wait := response.Parameters.Headers["Retry-After"]; (wait != "") != (response.Status == 429 || response.Status == 503) {
			t.Errorf("%s: status %d with Retry-After %q", name, response.Status, wait)
		}
		if strings.Contains(text, "$context.error.") {
			t.Errorf("%s shows API Gateway's own message: %s", name, text)
		}
	}
}

func TestGatewayResponsesAllowAllOriginsWhereSomeAreAllowed(t *testing.T) {
	for origins, want := range map[string]string{"": "", "https://portal.example.com": "'*'"} {
		for name, response := range stack(t, "AllowedOrigins="+origins).API.Responses {
			if got := response.Parameters.Headers["Access-Control-Allow-Origin"]; got != want {
				t.Errorf("%s: allowed origins %q: got %q, want %q", name, origins, got, want)
			}
		}
	}
}

func TestGatewayResponsesLinkToTheTableOfCodes(t *testing.T) {
	for address, want := range map[string]string{"": "/prod", "DomainName=api.example.com": "", "DomainName=api.example.com BasePath=shop": "/shop"} {
		for name, response := range stack(t, strings.Fields(address)...).API.Responses {
			if got := response.Parameters.Headers["Link"]; got != `'<`+want+`/docs/errors#codes>; rel="help"'` {
				t.Errorf("%s at %q: got %s", name, address, got)
			}
		}
	}
}

// stage are the settings of the stage.
type stage struct {
	MethodSettings []struct {
		ResourcePath         string
		Method               string `json:"HttpMethod"`
		ThrottlingRateLimit  string
		ThrottlingBurstLimit string
	}
	AccessLogSetting struct{ Format string }
}

func TestPathsWithoutCredentialsHaveLimitsOfTheirOwn(t *testing.T) {
	m := stack(t, "PublicThrottleRate=7", "PublicThrottleBurst=8")
	want := map[string]string{"* /*": "2000 4000"}
	for path, methods := range byPath(m) {
		private := path == "/ingest/sources/{id}" || // whose requests are signed
			slices.ContainsFunc(m.API.Routes, func(r Route) bool { return r.Path == path && r.Authorizer != "" })
		for method := range methods {
			if !private {
				want[method+" "+path] = "7 8"
			}
		}
	}
	for _, setting := range properties[stage](t, m, "Api").MethodSettings {
		path := strings.ReplaceAll(strings.TrimPrefix(setting.ResourcePath, "/~1"), "~1", "/")
		method := setting.Method + " /" + strings.TrimPrefix(path, "/")
		if got := setting.ThrottlingRateLimit + " " + setting.ThrottlingBurstLimit; got != want[method] {
			t.Errorf("%s: limits %q, want %q", method, got, want[method])
		}
		delete(want, method)
	}
	if len(want) > 0 {
		t.Errorf("methods without limits: %v", want)
	}
}

func TestTheWebACLCountsByAddressAndKeepsNoRequests(t *testing.T) {
	type visibility struct{ SampledRequestsEnabled string }
	acl := properties[struct {
		VisibilityConfig visibility
		Rules            []struct {
			Action    struct{ Block *struct{} }
			Statement struct {
				RateBasedStatement struct {
					AggregateKeyType           string
					EvaluationWindowSec, Limit int
				}
			}
			VisibilityConfig visibility
		}
	}](t, stack(t, "AddressRate=600"), "WebACL")
	rule := acl.Rules[0]
	rate := rule.Statement.RateBasedStatement
	if rate.Limit != 600 || rate.AggregateKeyType != "IP" || rate.EvaluationWindowSec != 60 || rule.Action.Block == nil {
		t.Errorf("got %+v", rule)
	}
	if acl.VisibilityConfig.SampledRequestsEnabled != "false" || rule.VisibilityConfig.SampledRequestsEnabled != "false" {
		t.Error("samples keep requests with their credentials")
	}
}

func TestAccessLogsNameWhoAskedAndHowLongItTookAndNoCredential(t *testing.T) {
	format := properties[stage](t, stack(t, "AccessLogs=with-role"), "Api").AccessLogSetting.Format
	fields := map[string]string{}
	if err := json.Unmarshal([]byte(format), &fields); err != nil {
		t.Fatalf("%v: %s", err, format)
	}
	for name, want := range map[string]string{
		"requestId": "$context.requestId", "address": "$context.identity.sourceIp", "principal": "$context.authorizer.principalId",
		"status": "$context.status", "resource": "$context.resourcePath", "latencyMs": "$context.responseLatency",
		"integrationMs": "$context.integration.latency", "authorizerMs": "$context.authorizer.latency",
	} {
		if fields[name] != want {
			t.Errorf("%s is %q, want %q", name, fields[name], want)
		}
	}
	for name, variable := range fields {
		// Clients choose these texts, and may put credentials or quotes into them.
		if found := regexp.MustCompile(`(?i)\.path$|header|query|userAgent|apiKey|cookie|\.error\.message$`).FindString(variable); found != "" {
			t.Errorf("%s logs %s", name, variable)
		}
	}
}
