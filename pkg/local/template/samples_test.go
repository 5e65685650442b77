package template_test

import (
	"crypto/md5" //nolint:gosec // what SQS sends
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/queue"
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
	for _, message := range sample[events.SQSEvent](t, "ingest").Records {
		changes, refusals := commerce.ParseMessage([]byte(message.Body))
		if len(changes) == 0 || len(refusals) > 0 {
			t.Errorf("ingest message %s: %d changes, refusals %+v", message.MessageId, len(changes), refusals)
		}
	}
	for _, name := range []string{"ingest", "worker", "sweeper-index-job"} {
		for _, message := range sample[events.SQSEvent](t, name).Records {
			if sum := fmt.Sprintf("%x", md5.Sum([]byte(message.Body))); sum != message.Md5OfBody {
				t.Errorf("%s message %s: MD5 %s, its body's is %s", name, message.MessageId, message.Md5OfBody, sum)
			}
		}
	}
}

func TestSweeperSampleIsItsSchedules(t *testing.T) {
	if event := sample[events.CloudWatchEvent](t, "sweeper"); event.Source != "aws.events" || event.DetailType != "Scheduled Event" {
		t.Errorf("got %+v", event)
	}
}

// The stream samples hold what the table writes for the records of the ingest
// sample, so that all of them are of one piece.
func TestStreamSamplesFollowFromTheIngestSample(t *testing.T) {
	ingested := map[value.ID]commerce.Change{}
	for _, message := range sample[events.SQSEvent](t, "ingest").Records {
		changes, _ := commerce.ParseMessage([]byte(message.Body))
		for _, c := range changes {
			id, err := commerce.Identify(c)
			if err != nil {
				t.Fatal(err)
			}
			ingested[id] = c
		}
	}
	for _, name := range []string{"dispatcher", "indexer"} {
		for i, record := range sample[events.DynamoDBEvent](t, name).Records {
			if dynamo.StreamType(&record) != dynamo.StreamRecord {
				continue
			}
			change, err := dynamo.Stream{}.RecordChange(&record)
			if err != nil {
				t.Errorf("%s record %d: %v", name, i, err)
				continue
			}
			if (change.Old == nil) != (record.EventName == "INSERT") {
				t.Errorf("%s record %d: %s with old image %t", name, i, record.EventName, change.Old != nil)
			}
			if change.Old != nil && !change.New.Deleted {
				continue
			}
			want, err := commerce.Apply(change.Old, ingested[change.New.ID], change.New.Revision)
			if err != nil {
				t.Fatalf("%s record %d: apply the ingest sample's change: %v", name, i, err)
			}
			if diff := cmp.Diff(want, change.New); diff != "" {
				t.Errorf("%s record %d (-from the ingest sample +in the image):\n%s", name, i, diff)
			}
		}
	}
}

func TestWorkerSampleIsADeliveryOfTheDispatcherSample(t *testing.T) {
	var delivery webhook.DeliveryRef
	for _, message := range sample[events.SQSEvent](t, "worker").Records {
		var err error
		if delivery, err = webhook.ParseDeliveryRef(message.Body); err != nil {
			t.Fatal(err)
		}
		if group := message.Attributes["MessageGroupId"]; group != delivery.EndpointID.String() {
			t.Errorf("message group %s, want the endpoint %s", group, delivery.EndpointID)
		}
	}
	var types []string
	found := false
	for _, record := range sample[events.DynamoDBEvent](t, "dispatcher").Records {
		if dynamo.StreamType(&record) != dynamo.StreamRecord {
			continue
		}
		change, err := dynamo.Stream{}.RecordChange(&record)
		if err != nil {
			t.Fatal(err)
		}
		payloads, err := commerce.Events(change.Old, change.New)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range payloads {
			types = append(types, p.Type)
			found = found || p.ID == delivery.EventID && p.OrganizationID == delivery.OrganizationID
		}
	}
	want := []string{"order.created", "order.updated", "order.confirmed", "order.paid", "payment.completed"}
	if !slices.Equal(types, want) || !found {
		t.Errorf("events %v, want %v; one of them is the worker's: %t", types, want, found)
	}
	if row := webhook.DeliveryID(delivery.EventID, delivery.EndpointID); row != delivery.DeliveryID {
		t.Errorf("row %s, want %s, which follows from event and endpoint", delivery.DeliveryID, row)
	}
	records := sample[events.DynamoDBEvent](t, "indexer").Records
	row, err := dynamo.Stream{}.Delivery(&records[len(records)-1])
	if err != nil || row.Ref() != delivery {
		t.Errorf("the indexer's last record is %+v (%v), want the worker's row", row, err)
	}
}

func TestIndexJobSampleIsForAListThatTheIndexerSampleChanges(t *testing.T) {
	changed := map[queue.IndexJob]bool{}
	for _, record := range sample[events.DynamoDBEvent](t, "indexer").Records {
		if dynamo.StreamType(&record) != dynamo.StreamRecord {
			continue
		}
		change, err := dynamo.Stream{}.RecordChange(&record)
		if err != nil {
			t.Fatal(err)
		}
		changed[queue.IndexJob{OrganizationID: change.New.OrganizationID, List: change.New.Kind.Plural()}] = true
	}
	for _, message := range sample[events.SQSEvent](t, "sweeper-index-job").Records {
		job, err := queue.ParseIndexJob(message.Body)
		if err != nil || !changed[job] {
			t.Errorf("%s: got %+v, %v; want one of %v", message.Body, job, err, changed)
		}
		if group := message.Attributes["MessageGroupId"]; group != job.OrganizationID.String() {
			t.Errorf("message group %s, want the organization %s", group, job.OrganizationID)
		}
	}
}

func TestDispatcherSampleHoldsADisabledEndpoint(t *testing.T) {
	records := sample[events.DynamoDBEvent](t, "dispatcher").Records
	old, next, err := dynamo.DecodeEndpointChange(&records[len(records)-1])
	if err != nil {
		t.Fatal(err)
	}
	if alerts := webhook.Announced(old, next); len(alerts) != 1 || alerts[0].Type != commerce.EventEndpointDisabled {
		t.Errorf("announced %+v", alerts)
	}
}
