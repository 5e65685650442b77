package template

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/app/state"
)

// deployed resolves the stack's template with parameters.
func deployed(t *testing.T, parameters map[string]string) (*Model, *resolver) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"JwtIssuer": "https://issuer.example", "JwtAudience": "commerce"}
	for name, v := range parameters {
		values[name] = v
	}
	m, err := Resolve(source, state.Template, values)
	if err != nil {
		t.Fatal(err)
	}
	both, err := resolvers(source, state.Template, values)
	if err != nil {
		t.Fatal(err)
	}
	return m, both[1]
}

// property resolves a property of a resource.
func (r *resolver) property(t *testing.T, path ...string) string {
	t.Helper()
	text, err := r.resolve(r.root.get("Resources").get(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// exists reports whether the stack has a resource, by its condition.
func (r *resolver) exists(t *testing.T, id string) bool {
	t.Helper()
	resource := r.root.get("Resources", id)
	if resource == nil {
		t.Fatalf("no resource %s", id)
	}
	condition := resource.get("Condition")
	if condition == nil {
		return true
	}
	holds, err := r.condition(r.root.get("Conditions", condition.text), resource.line)
	if err != nil {
		t.Fatal(err)
	}
	return holds
}

func TestWhatNeedsNoCredentialsIsThrottledByItself(t *testing.T) {
	m, r := deployed(t, map[string]string{"PublicThrottleRate": "7", "PublicThrottleBurst": "8"})
	settings := map[string]string{}
	for _, setting := range r.root.get("Resources", "Api", "Properties", "MethodSettings").list() {
		resource := strings.ReplaceAll(strings.TrimPrefix(setting.get("ResourcePath").text, "/~1"), "~1", "/")
		method := setting.get("HttpMethod").text + " /" + strings.TrimPrefix(resource, "/")
		if settings[method] != "" {
			t.Errorf("%s has two settings", method)
		}
		for _, limit := range []string{"ThrottlingRateLimit", "ThrottlingBurstLimit"} {
			text, err := r.resolve(setting.get(limit))
			if err != nil {
				t.Fatal(err)
			}
			settings[method] += text + " "
		}
	}
	if settings["* /*"] != "2000 4000 " {
		t.Errorf("the stage's own limits are %q", settings["* /*"])
	}
	delete(settings, "* /*")
	for _, route := range m.API.Routes {
		method := route.Method + " " + route.Path
		if want := map[bool]string{true: "7 8 "}[route.Authorizer == ""]; settings[method] != want {
			t.Errorf("%s with authorizer %q: limits %q, want %q", method, route.Authorizer, settings[method], want)
		}
		delete(settings, method)
	}
	if len(settings) > 0 {
		t.Errorf("settings of methods that there are not: %v", settings)
	}
}

func TestConcurrencyIsKeptByParameters(t *testing.T) {
	_, none := deployed(t, nil)
	_, some := deployed(t, map[string]string{
		"AuthorizerConcurrency": "11", "DevelopersConcurrency": "12", "WebhooksConcurrency": "13", "ApiConcurrency": "14",
	})
	for id, want := range map[string]string{
		"AuthorizerFunction": "11", "DevelopersFunction": "12", "WebhooksFunction": "13", "ApiFunction": "14", "IngestFunction": "",
	} {
		path := []string{id, "Properties", "ReservedConcurrentExecutions"}
		if got, by := none.property(t, path...), some.property(t, path...); got != "" || by != want {
			t.Errorf("%s keeps %q, and by its parameter %q; want none and %q", id, got, by, want)
		}
	}
}

func TestTheDispatchersBatchesOfAShardAreAParameter(t *testing.T) {
	m, _ := deployed(t, map[string]string{"DispatcherParallelization": "3"})
	if got := m.Functions["dispatcher"].Streams[0].ParallelizationFactor; got != 3 {
		t.Errorf("dispatcher: %d batches side by side, want 3", got)
	}
	if got := m.Functions["indexer"].Streams[0].ParallelizationFactor; got != 1 {
		t.Errorf("indexer: %d batches side by side, want 1", got)
	}
}

func TestWhatIsOptionalIsMadeByItsParameterOnly(t *testing.T) {
	for _, test := range []struct {
		parameters map[string]string
		id         string
		want       bool
	}{
		{nil, "WebACL", false},
		{nil, "WebACLOfTheStage", false},
		{map[string]string{"AddressRate": "600"}, "WebACL", true},
		{map[string]string{"AddressRate": "600"}, "WebACLOfTheStage", true},
		{nil, "Domain", false},
		{nil, "DomainMapping", false},
		{map[string]string{"DomainName": "api.example.com", "CertificateArn": "arn"}, "Domain", true},
		{map[string]string{"DomainName": "api.example.com", "CertificateArn": "arn"}, "DomainMapping", true},
		{map[string]string{"BasePath": "v1"}, "DomainMapping", false},
		{nil, "AccessLogAccount", false},
		{map[string]string{"AccessLogs": "with-role"}, "AccessLogAccount", true},
		{map[string]string{"AccessLogs": "with-role"}, "AccessLogRole", true},
		{map[string]string{"AccessLogs": "without-role"}, "AccessLogAccount", false},
		{map[string]string{"AccessLogs": "without-role"}, "AccessLogRole", false},
	} {
		_, r := deployed(t, test.parameters)
		if got := r.exists(t, test.id); got != test.want {
			t.Errorf("%v: %s exists: %t, want %t", test.parameters, test.id, got, test.want)
		}
	}
}

func TestTheWebACLCountsByAddressAndKeepsNoRequests(t *testing.T) {
	_, r := deployed(t, map[string]string{"AddressRate": "600"})
	acl := r.root.get("Resources", "WebACL", "Properties")
	rule := acl.get("Rules").list()[0]
	rate := rule.get("Statement", "RateBasedStatement")
	limit, err := r.resolve(rate.get("Limit"))
	if err != nil || limit != "600" || rate.get("AggregateKeyType").text != "IP" || rate.get("EvaluationWindowSec").text != "60" || rule.get("Action", "Block") == nil {
		t.Errorf("limit %s (%v) of %+v", limit, err, rate)
	}
	for _, config := range []*node{acl.get("VisibilityConfig"), rule.get("VisibilityConfig")} {
		if config.get("SampledRequestsEnabled").text != "false" {
			t.Error("samples keep requests with their credentials")
		}
	}
}

func TestAccessLogsNameWhoAskedAndHowLongItTookAndNoCredential(t *testing.T) {
	_, r := deployed(t, nil)
	setting := r.root.get("Resources", "Api", "Properties", "AccessLogSetting")
	_, choice, _ := setting.intrinsic()
	format := choice.list()[1].get("Format").text
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

func TestGatewayResponsesSpeakOfOriginsWhereTheyAreAllowed(t *testing.T) {
	for origins, want := range map[string]string{"": "", "https://portal.example.com": "'*'"} {
		m, _ := deployed(t, map[string]string{"AllowedOrigins": origins})
		for name, response := range m.API.Responses {
			if got := response.Headers["Access-Control-Allow-Origin"]; got != want {
				t.Errorf("%s: allowed origins %q: got %q, want %q", name, origins, got, want)
			}
		}
	}
}

func TestOnlyFunctionsOfTheAPIHaveItsSettings(t *testing.T) {
	m, _ := deployed(t, map[string]string{"BasePath": "v1", "AllowedOrigins": "*"})
	for name, f := range m.Functions {
		want := ""
		if slices.Contains([]string{"developers", "webhooks", "receipts", "api", "portal"}, name) {
			want = "v1 *"
		}
		if got := strings.TrimSpace(f.Environment["BASE_PATH"] + " " + f.Environment["ALLOWED_ORIGINS"]); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

func TestParametersTakeWhatTheyCanUse(t *testing.T) {
	_, r := deployed(t, nil)
	for _, test := range []struct {
		parameter, value string
		want             bool
	}{
		{"AllowedOrigins", "", true},
		{"AllowedOrigins", "*", true},
		{"AllowedOrigins", "https://a.example", true},
		{"AllowedOrigins", "https://a.example:8443,http://localhost:5173", true},
		{"AllowedOrigins", "a.example", false},
		{"AllowedOrigins", "https://a.example/", false},
		{"AllowedOrigins", "https://a.example, https://b.example", false},
		{"AllowedOrigins", "https://a.example,", false},
		{"BasePath", "", true},
		{"BasePath", "v1", true},
		{"BasePath", "/v1", false},
		{"BasePath", "a/b", false},
		{"BasePath", strings.Repeat("a", 100), true},
		{"BasePath", strings.Repeat("a", 101), false},
	} {
		pattern := regexp.MustCompile("^(?:" + r.root.get("Parameters", test.parameter, "AllowedPattern").text + ")$")
		if got := pattern.MatchString(test.value); got != test.want {
			t.Errorf("%s %q: taken %t, want %t", test.parameter, test.value, got, test.want)
		}
	}
}

func TestTheAlarmOnConcurrencyGoesByTheAccountsQuota(t *testing.T) {
	_, r := deployed(t, map[string]string{"AccountConcurrency": "5000"})
	alarm := r.root.get("Resources", "ClaimedConcurrencyAlarm", "Properties")
	metrics := alarm.get("Metrics").list()
	share, err := r.resolve(metrics[0].get("Expression"))
	claimed := metrics[1].get("MetricStat", "Metric")
	if err != nil || share != "claimed / 5000" || alarm.get("Threshold").text != "0.8" || metrics[1].get("Id").text != "claimed" ||
		claimed.get("MetricName").text != "ClaimedAccountConcurrency" || claimed.get("Dimensions") != nil {
		t.Errorf("share %q (%v) of %+v", share, err, claimed)
	}
}
