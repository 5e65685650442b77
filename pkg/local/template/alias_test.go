package template

import (
	"strings"
	"testing"
)

// What invokes $LATEST would miss a rollback. The alarms and the dashboard name functions, whose metrics count all
// versions.
func TestWhateverInvokesAFunctionNamesItsAlias(t *testing.T) {
	m, n, source := stack(t)
	if alias := n.get("Globals", "Function", "AutoPublishAlias"); alias == nil || alias.text != "live" {
		t.Fatalf("functions have the alias %+v, want live", alias)
	}
	for _, f := range m.Functions {
		if release := n.get("Resources", f.LogicalID, "Properties", "AutoPublishCodeSha256"); release.target() != "Release" {
			t.Errorf("%s has no version for each release: %+v", f.LogicalID, release)
		}
	}
	found := 0
	for id, resource := range n.get("Resources").pairs() {
		kind := resource.get("Type").text
		if kind != "AWS::Lambda::EventSourceMapping" && kind != "AWS::Lambda::Permission" {
			continue
		}
		found++
		if target := resource.get("Properties", "FunctionName").target(); !strings.HasSuffix(target, ".Alias") {
			t.Errorf("%s names %s, which is no alias", id, target)
		}
	}
	if found < len(m.Functions) {
		t.Errorf("found %d mappings and permissions", found)
	}
	for name, authorizer := range n.get("Resources", "Api", "Properties", "Auth", "Authorizers").pairs() {
		if target := authorizer.get("FunctionArn").target(); target != "AuthorizerFunction.Alias" {
			t.Errorf("%s asks %s", name, target)
		}
	}
	if strings.Contains(source, "Function.Arn}/invocations") {
		t.Error("a route leads to no alias")
	}
}

func TestAFunctionThatFailsRollsADeploymentBack(t *testing.T) {
	m, n, _ := stack(t)
	preference := n.get("Globals", "Function", "DeploymentPreference")
	alarms := map[string]bool{}
	for _, alarm := range preference.get("Alarms").list() {
		alarms[alarm.target()] = true
	}
	for name, f := range m.Functions {
		// A deployment group has no room for these alarms. ApiErrorsAlarm counts the failures, too.
		if id := f.LogicalID + "ErrorsAlarm"; !alarms[id] && name != "portal" && name != "receipts" {
			t.Errorf("%s ends no deployment", id)
		}
	}
	const most = 10 // of a deployment group
	if !alarms["ApiErrorsAlarm"] || len(alarms) > most {
		t.Errorf("alarms %v, want ApiErrorsAlarm and at most %d", alarms, most)
	}
	if got := preference.get("Enabled").target(); got != "GradualDeployment" || m.Parameters[got] != "false" {
		t.Errorf("gradual deployments go by %s, %q unless it is set", got, m.Parameters[got])
	}
}
