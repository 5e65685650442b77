package template

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/app/state"
)

func TestMistakesAreRefused(t *testing.T) {
	source := read(t, "template.yaml")
	for _, test := range []struct {
		name, old, new, want string
	}{
		{"no YAML", "\nParameters:", "\nParameters: [", "parse YAML"},
		{"missing parameter", "    Default: prod\n", "", "parameter StageName has no default"},
		{"unknown alias", "*apiRead", "*nobody", "unknown anchor 'nobody'"},
		{"unknown reference", "!Ref ApiMemory", "!Ref ApiMemry", "ApiMemry is neither a parameter nor a resource"},
		{"unknown attribute", "${DevelopersFunction.Alias}", "${DeveloperFunction.Alias}", "DeveloperFunction.Alias is neither"},
		{"unknown condition", "!If [KeepsApiConcurrency", "!If [Quick", "no such condition"},
		{"unknown intrinsic", "!Ref ApiMemory", "!Base64 x", "cannot resolve Fn::Base64"},
		{"not a number", "    Timeout: 30", "    Timeout: 30s", `within "/Timeout"`},
		{"unknown function", "functions/${ApiFunction.Alias}", "functions/${Api.Alias}", "names no function"},
		{"unknown authorizer", "security: [{Any: []}]", "security: [{Guests: []}]", "no authorizer Guests"},
		{"two authorizers", "security: [{Any: []}]", "security: [{Any: []}, {JwtOnly: []}]", "more than one authorizer"},
		{"unknown source", "EventSourceArn: *importsQueue", "EventSourceArn: !GetAtt Api.Arn", "neither the table's stream nor a queue"},
		{"cron schedule", "rate(1 minute)", "cron(0 12)", "only rates of minutes"},
		{"policy by name", "        - Version: '2012-10-17'\n          Statement:", "        - Managed: name\n          Statements:", "a policy without statements"},
		{"denial", "- Effect: Allow\n              Action: [dynamodb:", "- Effect: Deny\n              Action: [dynamodb:", `effect "Deny" is not supported`},
		{"other condition", "ForAllValues:StringLike:", "ForAnyValue:StringLike:", "a condition is not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			changed := strings.Replace(source, test.old, test.new, 1)
			if changed == source {
				t.Fatalf("%q does not occur", test.old)
			}
			if _, err := Resolve([]byte(changed), state.Template, values(nil)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q for %q: got %v, want an error with %q", test.new, test.old, err, test.want)
			}
		})
	}
	if _, err := Resolve([]byte(source), state.Template, values([]string{"Tabel=x"})); err == nil || !strings.Contains(err.Error(), "Tabel") {
		t.Errorf("a value that has no use: got %v, want an error naming Tabel", err)
	}
}

func TestValuesAreInPlaceOfReferences(t *testing.T) {
	got := stack(t, "Table=real", "AWS::Region=mars", "AllowPrivateTargets=true").Functions["worker"].Environment
	for name, want := range map[string]string{
		"TABLE_NAME": "real", "ALLOW_PRIVATE_TARGETS": "true", "ARN_ENDPOINTS": "none",
		"DELIVERIES_QUEUE_URL": "https://sqs.mars.amazonaws.com/000000000000/DeliveriesQueue",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestFunctionsHaveTheGlobalsUnlessTheyHaveTheirOwn(t *testing.T) {
	functions := stack(t).Functions
	api, sweeper := functions["api"], functions["sweeper"]
	if api.Timeout.Seconds() != 30 || api.MemoryMB != 3008 || sweeper.Timeout.Seconds() != 55 || functions["ingest"].MemoryMB != 512 {
		t.Errorf("got %v and %d MB, %v, %d MB", api.Timeout, api.MemoryMB, sweeper.Timeout, functions["ingest"].MemoryMB)
	}
	if want := []Schedule{{ID: "SweeperFunctionMinute", Every: 60e9}}; !cmp.Equal(sweeper.Schedules, want) {
		t.Errorf("schedules %v, want %v", sweeper.Schedules, want)
	}
}

func TestTheMaximumThroughputIsThatOfTableAndIndex(t *testing.T) {
	for _, row := range []struct {
		parameters []string
		want       string
	}{
		{nil, "null"},
		{[]string{"MaxReadUnits=7"}, `{"MaxReadRequestUnits":7,"MaxWriteRequestUnits":null}`},
		{[]string{"MaxWriteUnits=8"}, `{"MaxReadRequestUnits":null,"MaxWriteRequestUnits":8}`},
		{[]string{"MaxReadUnits=7", "MaxWriteUnits=8"}, `{"MaxReadRequestUnits":7,"MaxWriteRequestUnits":8}`},
	} {
		t.Run(row.want, func(t *testing.T) {
			table := stack(t, row.parameters...).Table.Create
			for _, declared := range []*types.OnDemandThroughput{table.OnDemandThroughput, table.GlobalSecondaryIndexes[0].OnDemandThroughput} {
				if got, err := json.Marshal(declared); err != nil || string(got) != row.want {
					t.Errorf("got %s, %v, want %s", got, err, row.want)
				}
			}
		})
	}
}
