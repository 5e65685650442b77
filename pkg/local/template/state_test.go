package template

import (
	"strings"
	"testing"
)

// What the state holds outlives its stack; only a first creation that fails takes back what it made. A table that
// refuses its deletion would make that fail, too.
func TestTheStateIsRetained(t *testing.T) {
	for id, resource := range stateStack(t).get("Resources").pairs() {
		want := "RetainExceptOnCreate"
		if resource.get("Type").text == "AWS::DynamoDB::Table" {
			want = "Retain"
		}
		for policy, want := range map[string]string{"DeletionPolicy": want, "UpdateReplacePolicy": "Retain"} {
			if got := resource.get(policy); got == nil || got.text != want {
				t.Errorf("%s: %s is %+v, want %s", id, policy, got, want)
			}
		}
	}
}

func TestTheServiceHoldsNoState(t *testing.T) {
	_, n, _ := stack(t)
	held := map[string]bool{}
	for _, resource := range stateStack(t).get("Resources").pairs() {
		held[resource.get("Type").text] = true
	}
	for id, resource := range n.get("Resources").pairs() {
		if held[resource.get("Type").text] {
			t.Errorf("%s belongs into the state's stack", id)
		}
	}
}

func TestWhatTheServiceNeedsOfItsStateIsAnOutputThere(t *testing.T) {
	_, n, _ := stack(t)
	outputs := stateStack(t).get("Outputs")
	for name, parameter := range n.get("Parameters").pairs() {
		byOperator := name == "JwtIssuer" || name == "JwtAudience"
		if needed := parameter.get("Default") == nil && !byOperator; needed != (outputs.get(name) != nil) {
			t.Errorf("%s: needed of the state: %t, an output there: %t", name, needed, outputs.get(name) != nil)
		}
	}
}

func TestARestoredTableTakesThePlaceOfTheStates(t *testing.T) {
	const name, stream = "restored", "arn:aws:dynamodb:local:000000000000:table/restored/stream/2026-11-22T19:00:00.000"
	m, r := deployed(t, map[string]string{"RestoredTableName": name, "RestoredTableStreamArn": stream})
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
	for _, mapping := range []string{"DispatcherChanges", "IndexerChanges"} {
		if got := r.property(t, mapping, "Properties", "EventSourceArn"); got != stream {
			t.Errorf("%s reads %s", mapping, got)
		}
	}
}
