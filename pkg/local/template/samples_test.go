package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/webhook"
)

const root = "../../.."

func model(t *testing.T) *template.Model {
	t.Helper()
	m, err := template.Load(filepath.Join(root, "template.yaml"), map[string]string{"JwtIssuer": "i", "JwtAudience": "a"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// names lists what a folder holds, without endings.
func names(t *testing.T, folder string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, entry := range entries {
		all[strings.TrimSuffix(entry.Name(), ".json")] = true
	}
	return all
}

func sample[T any](t *testing.T, name string) T {
	t.Helper()
	var event T
	text, err := os.ReadFile(filepath.Join(root, "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return event
}

func TestEveryFunctionHasItsCodeAndASample(t *testing.T) {
	m, code, samples := model(t), names(t, "functions"), names(t, "events")
	for name, f := range m.Functions {
		if !code[name] {
			t.Errorf("%s: there is no functions/%s", f.LogicalID, name)
		}
		found := false
		for file := range samples {
			if function, _, _ := strings.Cut(file, "-"); function == name {
				found = true
			}
		}
		if !found {
			t.Errorf("%s: there is no sample in events", f.LogicalID)
		}
	}
	for name := range code {
		if _, ok := m.Functions[name]; !ok {
			t.Errorf("functions/%s is not in the template", name)
		}
	}
	for file := range samples {
		function, _, _ := strings.Cut(file, "-")
		if _, ok := m.Functions[function]; !ok {
			t.Errorf("events/%s.json is no function's", file)
		}
	}
}

func TestRequestSamplesMatchTheirRoutes(t *testing.T) {
	m := model(t)
	type asked struct{ method, resource, function, authorizer string }
	var all []asked
	for _, name := range []string{"developers", "webhooks", "api"} {
		r := sample[events.APIGatewayProxyRequest](t, name)
		all = append(all, asked{r.HTTPMethod, r.Resource, name, ""})
		if r.RequestContext.Path != "/prod"+r.Path || r.RequestContext.Authorizer["principalKind"] == nil {
			t.Errorf("%s: context %+v", name, r.RequestContext)
		}
	}
	for name, authorizer := range map[string]string{"authorizer-jwt": "JwtOnly", "authorizer-key": "Any"} {
		r := sample[events.APIGatewayCustomAuthorizerRequestTypeRequest](t, name)
		all = append(all, asked{r.HTTPMethod, r.Resource, "", authorizer})
		if r.Type != "REQUEST" || !strings.HasSuffix(r.MethodArn, "/prod/"+r.HTTPMethod+r.Path) {
			t.Errorf("%s: type %q, methodArn %q", name, r.Type, r.MethodArn)
		}
	}
	for _, a := range all {
		found := false
		for _, r := range m.API.Routes {
			if r.Method == a.method && r.Path == a.resource {
				found = (a.function == "" || r.Function == a.function) && (a.authorizer == "" || r.Authorizer == a.authorizer)
			}
		}
		if !found {
			t.Errorf("%+v is no route of the template", a)
		}
	}
}

func TestQueueSamplesCanBeRead(t *testing.T) {
	for _, message := range sample[events.SQSEvent](t, "ingest").Records {
		changes, refusals := commerce.ParseMessage([]byte(message.Body))
		if len(changes) == 0 || len(refusals) > 0 {
			t.Errorf("ingest message %s: %d changes, refusals %+v", message.MessageId, len(changes), refusals)
		}
	}
	for _, message := range sample[events.SQSEvent](t, "worker").Records {
		if _, err := webhook.ParseRef(message.Body); err != nil {
			t.Errorf("worker message %s: %v", message.MessageId, err)
		}
	}
}

func TestStreamSamplesCanBeRead(t *testing.T) {
	for _, name := range []string{"dispatcher", "indexer"} {
		for i, record := range sample[events.DynamoDBEvent](t, name).Records {
			if kind := dynamo.StreamType(&record); kind != dynamo.StreamRecord {
				t.Errorf("%s record %d is of type %q", name, i, kind)
				continue
			}
			change, err := dynamo.DecodeRecordChange(&record)
			if err != nil {
				t.Errorf("%s record %d: %v", name, i, err)
			} else if (change.Old == nil) != (record.EventName == "INSERT") {
				t.Errorf("%s record %d: %s with old image %t", name, i, record.EventName, change.Old != nil)
			}
		}
	}
}
