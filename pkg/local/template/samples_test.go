package template

import (
	"crypto/md5" //nolint:gosec // what SQS sends
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

func sample[T any](t *testing.T, name string) T {
	t.Helper()
	var event T
	text, err := os.ReadFile(filepath.Join(root, "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &event, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return event
}

// requests are the samples of functions behind the API.
func requests() map[string]string {
	return map[string]string{
		"developers-create": "developers", "developers-list": "developers",
		"webhooks-create": "webhooks", "webhooks-event-types": "webhooks", "receipts": "receipts", "api": "api",
	}
}

func TestEveryFunctionHasASample(t *testing.T) {
	files, err := os.ReadDir(filepath.Join(root, "events"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		function, _, _ := strings.Cut(strings.TrimSuffix(file.Name(), ".json"), "-")
		found[function] = true
	}
	want := map[string]bool{}
	for name := range stack(t).Functions {
		want[name] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("functions of the samples (-want +got):\n%s", diff)
	}
}

func TestRequestSamplesMatchTheirRoutes(t *testing.T) {
	m := stack(t)
	type asked struct{ method, resource, function, authorizer string }
	var all []asked
	for name, function := range requests() {
		r := sample[events.APIGatewayProxyRequest](t, name)
		all = append(all, asked{r.HTTPMethod, r.Resource, function, ""})
		if _, err := auth.PrincipalOf(r.RequestContext.Authorizer, r.MultiValueHeaders); err != nil || r.RequestContext.Path != "/prod"+r.Path {
			t.Errorf("%s: context %+v: %v", name, r.RequestContext, err)
		}
	}
	for name, authorizer := range map[string]string{"authorizer-jwt": "JwtOnly", "authorizer-key": "Any"} {
		r := sample[events.APIGatewayCustomAuthorizerRequestTypeRequest](t, name)
		all = append(all, asked{r.HTTPMethod, r.Resource, "", authorizer})
		if r.Type != "REQUEST" || !strings.HasSuffix(r.MethodArn, "/prod/"+r.HTTPMethod+r.Path) {
			t.Errorf("%s: type %q, methodArn %q", name, r.Type, r.MethodArn)
		}
		if key, given := r.Headers["X-API-Key"]; given {
			if _, err := account.ParseKeyText(key); err != nil {
				t.Errorf("%s: the key %s is refused before it is looked up: %v", name, key, err)
			}
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
	for name, read := range map[string]func(body string) error{
		"ingest": func(body string) error {
			changes, refusals := commerce.ParseMessage([]byte(body))
			if len(changes) == 0 || len(refusals) > 0 {
				return fmt.Errorf("%d changes, refusals %+v", len(changes), refusals)
			}
			return nil
		},
		"worker":            func(body string) error { _, err := webhook.ParseDeliveryMessage(body); return err },
		"sweeper-index-job": func(body string) error { _, err := queue.ParseIndexJob(body); return err },
	} {
		for _, message := range sample[events.SQSEvent](t, name).Records {
			if err := read(message.Body); err != nil {
				t.Errorf("%s message %s: %v", name, message.MessageId, err)
			}
			if sum := fmt.Sprintf("%x", md5.Sum([]byte(message.Body))); sum != message.Md5OfBody {
				t.Errorf("%s message %s: MD5 %s, its body's is %s", name, message.MessageId, message.Md5OfBody, sum)
			}
		}
	}
}

func TestSamplesOfStreamAndScheduleCanBeRead(t *testing.T) {
	if event := sample[events.CloudWatchEvent](t, "sweeper"); event.Source != "aws.events" || event.DetailType != "Scheduled Event" {
		t.Errorf("sweeper: got %+v", event)
	}
	for _, name := range []string{"dispatcher", "indexer"} {
		for i, record := range sample[events.DynamoDBEvent](t, name).Records {
			var err error
			switch dynamo.StreamType(&record) {
			case dynamo.StreamRecord:
				_, err = dynamo.Stream{}.RecordChange(&record)
			case dynamo.StreamEvent:
				_, err = dynamo.Stream{}.Delivery(&record)
			default:
				_, _, err = dynamo.Stream{}.EndpointChange(&record)
			}
			if err != nil {
				t.Errorf("%s record %d: %v", name, i, err)
			}
		}
	}
}
