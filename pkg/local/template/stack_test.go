package template

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/app/state"
)

// The tests of this folder hold the stack's own template to what sam validate and cfn-lint do not see.

const root = "../../.."

// stack is the service's stack with parameters (Key=Value).
func stack(t *testing.T, parameters ...string) *Model {
	t.Helper()
	m, err := Load(filepath.Join(root, "template.yaml"), values(parameters))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func values(parameters []string) map[string]string {
	all := map[string]string{"JwtIssuer": "https://issuer.example", "JwtAudience": "commerce"}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		all[name] = value
	}
	return all
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// templates are those of the service and of its state, not resolved.
func templates(t *testing.T) (service, kept tree) {
	t.Helper()
	service, err := parse([]byte(read(t, "template.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if kept, err = parse(state.Template); err != nil {
		t.Fatal(err)
	}
	return service, kept
}

// properties are those of a resource, resolved.
func properties[P any](t *testing.T, m *Model, id string) (p P) {
	t.Helper()
	if err := decode(m.Resources[id].Properties, &p); err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return p
}

// target is what a Ref names.
func target(v any) string { return textAt(v, "Ref") }

// mentions collects what Ref, Sub, If and Condition name anywhere in v.
func mentions(v any, names map[string]bool) {
	switch v := v.(type) {
	case tree:
		for key, value := range v {
			text, _ := value.(string)
			switch key {
			case "Ref", "Condition":
				names[text] = true
			case "Fn::If":
				names[value.([]any)[0].(string)] = true
			case "Fn::Sub":
				for _, match := range regexp.MustCompile(`\$\{([\w:]+)`).FindAllStringSubmatch(text, -1) {
					names[match[1]] = true
				}
			}
			mentions(value, names)
		}
	case []any:
		for _, entry := range v {
			mentions(entry, names)
		}
	}
}

func TestEveryParameterAndConditionIsUsed(t *testing.T) {
	service, kept := templates(t)
	for _, template := range []tree{service, kept} {
		used := map[string]bool{}
		mentions(template, used)
		for _, section := range []string{"Parameters", "Conditions"} {
			for name := range below(template, section) {
				if !used[name] {
					t.Errorf("%s: nothing uses %s", section, name)
				}
			}
		}
	}
}

func TestNothingNamesAnAccountOrRegion(t *testing.T) {
	if found := regexp.MustCompile(`\b\d{12}\b|\b(us|eu|ap)-[a-z]+-\d\b`).FindString(read(t, "template.yaml") + string(state.Template)); found != "" {
		t.Errorf("the template names %s", found)
	}
}

// The state outlives its stack. A table that refuses its deletion would fail a first creation that takes back what it made.
func TestTheStateIsRetained(t *testing.T) {
	service, kept := templates(t)
	held := map[string]bool{}
	for id, resource := range below(kept, "Resources") {
		want := "RetainExceptOnCreate"
		if textAt(resource, "Type") == "AWS::DynamoDB::Table" {
			want = "Retain"
		}
		if deletion, update := textAt(resource, "DeletionPolicy"), textAt(resource, "UpdateReplacePolicy"); deletion != want || update != "Retain" {
			t.Errorf("%s: policies %q and %q, want %s and Retain", id, deletion, update, want)
		}
		for name := range below(resource, "Properties") {
			if strings.HasSuffix(name, "Name") {
				t.Errorf("%s has a fixed %s: it stays when the stack is deleted, and blocks its creation", id, name)
			}
		}
		held[textAt(resource, "Type")] = true
	}
	for id, resource := range below(service, "Resources") {
		if held[textAt(resource, "Type")] {
			t.Errorf("%s belongs into the state's stack", id)
		}
	}
}

func TestTheServiceNeedsOutputsOfItsState(t *testing.T) {
	service, kept := templates(t)
	for name, parameter := range below(service, "Parameters") {
		byOperator := name == "JwtIssuer" || name == "JwtAudience"
		if needed := at(parameter, "Default") == nil && !byOperator; needed != (at(kept, "Outputs", name) != nil) {
			t.Errorf("%s: needed of the state: %t, an output there: %t", name, needed, !needed)
		}
	}
}

func TestARestoredTableTakesThePlaceOfTheStates(t *testing.T) {
	const name, stream = "restored", "arn:aws:dynamodb:local:000000000000:table/restored/stream/2026-11-22T19:00:00.000"
	m := stack(t, "RestoredTableName="+name, "RestoredTableStreamArn="+stream)
	for _, function := range m.Functions {
		if got := function.Environment["TABLE_NAME"]; got != name {
			t.Errorf("%s works on the table %s", function.Name, got)
		}
		for _, p := range function.Permissions {
			if strings.HasPrefix(p.Action, "dynamodb:") && !strings.Contains(p.Resource, ":table/"+name) {
				t.Errorf("%s may %s on %s", function.Name, p.Action, p.Resource)
			}
		}
	}
	for _, id := range []string{"DispatcherChanges", "IndexerChanges"} {
		if got := properties[mapping](t, m, id).EventSourceARN; got != stream {
			t.Errorf("%s reads %s", id, got)
		}
	}
}

func TestTableStreamsWholeImages(t *testing.T) {
	table := stack(t).Table
	if view := table.Create.StreamSpecification.StreamViewType; view != "NEW_AND_OLD_IMAGES" || table.TTL != "expiresAtEpoch" {
		t.Errorf("table has stream %q and TTL on %q", view, table.TTL)
	}
}

// A caller of $LATEST would miss a rollback.
func TestEveryCallerOfAFunctionNamesItsAlias(t *testing.T) {
	service, _ := templates(t)
	if alias := textAt(service, "Globals", "Function", "AutoPublishAlias"); alias != "live" {
		t.Errorf("functions have the alias %q, want live", alias)
	}
	callers := 0
	for id, resource := range below(service, "Resources") {
		switch textAt(resource, "Type") {
		case "AWS::Serverless::Function":
			if release := target(at(resource, "Properties", "AutoPublishCodeSha256")); release != "Release" {
				t.Errorf("%s has no version for each release: %q", id, release)
			}
		case "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission":
			callers++
			if name := target(at(resource, "Properties", "FunctionName")); !strings.HasSuffix(name, ".Alias") {
				t.Errorf("%s names %s, which is no alias", id, name)
			}
		}
	}
	if callers < 12 {
		t.Errorf("found %d mappings and permissions", callers)
	}
	for name, authorizer := range below(service, "Resources", "Api", "Properties", "Auth", "Authorizers") {
		if function := target(at(authorizer, "FunctionArn")); function != "AuthorizerFunction.Alias" {
			t.Errorf("%s asks %s", name, function)
		}
	}
	if strings.Contains(read(t, "template.yaml"), "Function.Arn}/invocations") {
		t.Error("a route leads to no alias")
	}
}

func TestAFunctionThatFailsRollsADeploymentBack(t *testing.T) {
	service, _ := templates(t)
	preference := at(service, "Globals", "Function", "DeploymentPreference")
	alarms := map[string]bool{}
	for _, alarm := range at(preference, "Alarms").([]any) {
		alarms[target(alarm)] = true
	}
	for name, f := range stack(t).Functions {
		// A deployment group has no room for these alarms. ApiErrorsAlarm counts the failures, too.
		if id := f.LogicalID + "ErrorsAlarm"; !alarms[id] && name != "portal" && name != "receipts" {
			t.Errorf("%s ends no deployment", id)
		}
	}
	const most = 10 // of a deployment group
	if !alarms["ApiErrorsAlarm"] || len(alarms) > most {
		t.Errorf("alarms %v, want ApiErrorsAlarm and at most %d", alarms, most)
	}
	if got := target(at(preference, "Enabled")); got != "GradualDeployment" || textAt(service, "Parameters", got, "Default") != "false" {
		t.Errorf("gradual deployments go by %s", got)
	}
}

func TestEveryVariableIsReadByTheFunctions(t *testing.T) {
	code := sources(t, "pkg/app")
	for name := range stack(t).Functions["api"].Environment {
		if readBySDK := strings.HasPrefix(name, "AWS_"); !readBySDK && !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("nothing reads the variable %s", name)
		}
	}
}

// sources is the code below a folder, without tests.
func sources(t *testing.T, folder string) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}

func TestOnlyFunctionsOfTheAPIHaveItsSettings(t *testing.T) {
	for name, f := range stack(t, "BasePath=v1", "AllowedOrigins=*").Functions {
		want := ""
		if slices.Contains([]string{"developers", "webhooks", "receipts", "api", "portal"}, name) {
			want = "v1 *"
		}
		if got := strings.TrimSpace(f.Environment["BASE_PATH"] + " " + f.Environment["ALLOWED_ORIGINS"]); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

func TestConcurrencyIsKeptByParameters(t *testing.T) {
	type kept struct{ ReservedConcurrentExecutions string }
	none := stack(t)
	some := stack(t, "AuthorizerConcurrency=11", "DevelopersConcurrency=12", "WebhooksConcurrency=13", "ApiConcurrency=14")
	for id, want := range map[string]string{
		"AuthorizerFunction": "11", "DevelopersFunction": "12", "WebhooksFunction": "13", "ApiFunction": "14", "IngestFunction": "",
	} {
		got, by := properties[kept](t, none, id).ReservedConcurrentExecutions, properties[kept](t, some, id).ReservedConcurrentExecutions
		if got != "" || by != want {
			t.Errorf("%s keeps %q, and by its parameter %q; want none and %q", id, got, by, want)
		}
	}
}

func TestAParameterMakesWhatIsOptional(t *testing.T) {
	domain := []string{"DomainName=api.example.com", "CertificateArn=arn"}
	for _, test := range []struct {
		parameters []string
		ids        []string
		want       bool
	}{
		{nil, []string{"ArnEndpointsPolicy", "EndpointAlertTopicPolicy", "WebACL", "WebACLOfTheStage", "Domain", "DomainMapping", "AccessLogAccount", "AccessLogRole"}, false},
		{[]string{"AddressRate=600"}, []string{"WebACL", "WebACLOfTheStage"}, true},
		{domain, []string{"Domain", "DomainMapping"}, true},
		{[]string{"ArnEndpoints=all-accounts"}, []string{"ArnEndpointsPolicy"}, true},
		{[]string{"EndpointAlertTopicArn=arn"}, []string{"EndpointAlertTopicPolicy"}, true},
		{[]string{"BasePath=v1"}, []string{"DomainMapping"}, false},
		{[]string{"AccessLogs=with-role"}, []string{"AccessLogAccount", "AccessLogRole"}, true},
		{[]string{"AccessLogs=without-role"}, []string{"AccessLogAccount", "AccessLogRole"}, false},
	} {
		r, err := newResolver([]byte(read(t, "template.yaml")), state.Template, values(test.parameters))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range test.ids {
			got, err := r.evaluate("Condition", at(r.root, "Resources", id, "Condition"))
			if err != nil || got != test.want {
				t.Errorf("%v: %s exists: %v (%v), want %t", test.parameters, id, got, err, test.want)
			}
		}
	}
}

func TestParametersTakeWhatTheyCanUse(t *testing.T) {
	service, _ := templates(t)
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
		{"PortalFrames", "", true},
		{"PortalFrames", "https://a.example:8443,http://localhost:*,http://127.0.0.1:5173,http://localhost", true},
		{"PortalFrames", "http://a.example", false},
		{"PortalFrames", "http://localhost.example", false},
		{"PortalFrames", "https://a.example/page", false},
		{"PortalFrames", "https://*.example", false},
		{"PortalFrames", "*", false},
		{"PortalFrames", "https://a.example; script-src *", false},
		{"PortalBrand", "", true},
		{"PortalBrand", "Acme & Söhne", true},
		{"PortalBrand", strings.Repeat("é", 60) + ",#0055aA", true},
		{"PortalBrand", "Acme,#0055aa,https://acme.example/logo.svg?v=2", true},
		{"PortalBrand", strings.Repeat("a", 61), false},
		{"PortalBrand", "Acme,blue", false},
		{"PortalBrand", "Acme,#05a", false},
		{"PortalBrand", "Acme,#0055aa,http://acme.example/logo.svg", false},
		{"PortalBrand", "Acme,#0055aa,https://acme.example/; img-src *", false},
		{"BasePath", "", true},
		{"BasePath", "v1", true},
		{"BasePath", "/v1", false},
		{"BasePath", "a/b", false},
		{"BasePath", strings.Repeat("a", 101), false},
	} {
		pattern := regexp.MustCompile("^(?:" + textAt(service, "Parameters", test.parameter, "AllowedPattern") + ")$")
		if got := pattern.MatchString(test.value); got != test.want {
			t.Errorf("%s %q: taken %t, want %t", test.parameter, test.value, got, test.want)
		}
	}
}
