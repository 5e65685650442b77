package app_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/dynamo"
	lists "github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// permitted are the dependencies of one function, whose requests to the table
// fail the test unless the template permits them, partition keys included.
func permitted(t testing.TB, s *servicetest.Service, function string, base *app.Dependencies) *app.Dependencies {
	t.Helper()
	own := *base
	own.Table = permittedTable(t, s, function, s.Client().Options().HTTPClient)
	return &own
}

// permittedTable is the table as the function may use it, through the client.
func permittedTable(t testing.TB, s *servicetest.Service, function string, client dynamodb.HTTPClient) *dynamo.Table {
	t.Helper()
	watch := &policy{t: t, function: function, permissions: dynamotest.Model(t).Functions[function].Permissions, client: client}
	return dynamo.New(dynamodb.New(s.Client().Options(), func(o *dynamodb.Options) { o.HTTPClient = watch }), s.Table.Name(), s.Time)
}

// covers reports whether the permission is for the action, and for items with the partition key.
func covers(p template.Permission, action, partitionKey string) bool {
	return p.Action == action && (p.LeadingKeys == "" || slices.ContainsFunc(strings.Fields(p.LeadingKeys), func(pattern string) bool {
		matches, err := path.Match(pattern, partitionKey)
		return matches && err == nil
	}))
}

// policy is the function's, as IAM evaluates it for each request.
type policy struct {
	t           testing.TB
	function    string
	permissions []template.Permission
	client      dynamodb.HTTPClient
}

func (p *policy) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	accesses, err := accessesOf(operation, body)
	if err != nil {
		p.t.Errorf("%s: %s: %v", p.function, operation, err)
	}
	ofIndex := bytes.Contains(body, []byte(`"IndexName":`))
	for _, a := range accesses {
		if !slices.ContainsFunc(p.permissions, func(permission template.Permission) bool {
			return strings.Contains(permission.Resource, "/index/") == ofIndex && covers(permission, a.action, a.key)
		}) {
			p.t.Errorf("%s: the template does not permit %s of the partition %s", p.function, a.action, a.key)
		}
	}
	return p.client.Do(r)
}

// access is an action on the items of a partition.
type access struct{ action, key string }

// accessesOf reads what a request asks for.
func accessesOf(operation string, body []byte) ([]access, error) {
	type attributes map[string]struct{ S string }
	type write struct{ Item, Key attributes }
	var in struct {
		write

		RequestItems              map[string]struct{ Keys []attributes }
		TransactItems             []map[string]write
		ExpressionAttributeValues attributes
		Statements                []struct {
			Statement  string
			Parameters []struct{ S string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	of := func(w write) string { return w.Item["PK"].S + w.Key["PK"].S }
	var all []access
	switch operation {
	case "Query":
		all = append(all, access{"dynamodb:Query", in.ExpressionAttributeValues[":pk"].S})
	case "BatchGetItem":
		for _, table := range in.RequestItems {
			for _, key := range table.Keys {
				all = append(all, access{"dynamodb:BatchGetItem", key["PK"].S})
			}
		}
	case "TransactWriteItems":
		for _, item := range in.TransactItems {
			for kind, w := range item {
				all = append(all, access{"dynamodb:" + kind + "Item", of(w)})
			}
		}
	case "BatchExecuteStatement":
		for _, s := range in.Statements {
			verb, _, _ := strings.Cut(s.Statement, " ")
			before, _, _ := strings.Cut(s.Statement, "PK") // first in an INSERT, in the condition of an UPDATE
			key := s.Parameters[strings.Count(before, "?")].S
			all = append(all, access{"dynamodb:PartiQL" + verb[:1] + strings.ToLower(verb[1:]), key})
		}
	default:
		all = append(all, access{"dynamodb:" + operation, of(in.write)})
	}
	for _, a := range all {
		if a.key == "" {
			return nil, errors.New("no partition key was found")
		}
	}
	return all, nil
}

// TestFunctionsMayDoWhatTheyDo has a record of each kind stored and indexed, two
// events delivered and counted, and every list built from the table. The other
// tests of this package hold functions to their permissions, too.
func TestFunctionsMayDoWhatTheyDo(t *testing.T) {
	w := newMeasured(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()
	e, _ := w.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &receiver.URL, Events: &[]string{"order.created"}})
	take, ingestErr := app.Ingest(t.Context(), permitted(t, w.Service, "ingest", w.base))
	sweep, sweepErr := app.Sweeper(t.Context(), permitted(t, w.Service, "sweeper", w.base))
	index, indexErr := app.Indexer(t.Context(), permitted(t, w.Service, "indexer", w.base))
	work, workErr := app.Worker(t.Context(), permitted(t, w.Service, "worker", w.base))
	if err := errors.Join(ingestErr, sweepErr, indexErr, workErr); err != nil {
		t.Fatal(err)
	}
	follow := func() {
		t.Helper()
		changes := w.StreamRecords(t, dynamo.StreamRecord, dynamo.StreamEvent, dynamo.StreamBeat)
		if answer, err := index(t.Context(), events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: changes}}); err != nil || len(answer.BatchItemFailures) > 0 {
			t.Fatalf("index: %+v, %v", answer, err)
		}
	}
	var records []events.SQSMessage
	for _, kind := range commerce.Kinds() {
		deletion := `{"organizationId":"` + w.Org.String() + `","kind":"` + string(kind) + `","op":"delete","record":{"id":"` + value.NewID().String() + `"}}`
		records = append(records, events.SQSMessage{MessageId: string(kind), Body: deletion})
	}
	for _, name := range []string{"a", "b"} { // the second goes into the ledger
		records = append(records, events.SQSMessage{MessageId: name, Body: `{"organizationId":"` + w.Org.String() + `","kind":"stock","op":"adjust",` +
			`"record":{"productId":"` + w.App.String() + `","delta":1,"adjustmentId":"` + name + `"}}`})
		if answer, err := take(t.Context(), events.SQSEvent{Records: records[len(records)-1:]}); err != nil || len(answer.BatchItemFailures) > 0 {
			t.Fatalf("ingest: %+v, %v", answer, err)
		}
	}
	if answer, err := take(t.Context(), events.SQSEvent{Records: records}); err != nil || len(answer.BatchItemFailures) > 0 {
		t.Fatalf("ingest: %+v, %v", answer, err)
	}
	if _, err := sweep(t.Context(), sweeper.Event{}); err != nil {
		t.Fatal(err)
	}
	follow() // the heartbeat
	var sent []*webhook.Delivery
	for range 2 {
		sent = append(sent, webhook.NewDelivery(w.Event(t, `{}`), e, "", w.Now()))
	}
	existing, _, err := w.Table.CreateDeliveries(t.Context(), sent)
	if err := errors.Join(err, w.Queues().Deliveries().Send(t.Context(), webhook.LaneMain, w.Now(), sent...)); err != nil {
		t.Fatalf("CreateDeliveries: %+v, %v", existing, err)
	}
	if _, err := work(t.Context(), events.SQSEvent{Records: w.Queues().Await(t, servicetest.MainQueue)}); err != nil {
		t.Fatal(err)
	}
	follow()
	if found, err := w.Table.Counters(t.Context(), w.Org, e.ID); err != nil || found[e.ID].SuccessCount != 2 {
		t.Errorf("counted %+v, %v; want 2 successes", found, err)
	}
	for _, list := range lists.NewLists(w.Table, dynamo.Shards).All() {
		if err := (lists.Key{Org: w.Org, List: list}).RequestRebuild(t.Context(), w.Table, w.Now()); err != nil {
			t.Fatal(err)
		}
		job := events.SQSMessage{Body: `{"organizationId":"` + w.Org.String() + `","list":"` + list.Name + `"}`}
		for range 2 { // the second compacts what the first has built
			if answer, err := sweep(t.Context(), sweeper.Event{Records: []events.SQSMessage{job}}); err != nil || len(answer.BatchItemFailures) > 0 {
				t.Errorf("%s: %+v, %v", list.Name, answer, err)
			}
		}
	}
}

// TestFunctionsReachNoOtherItems states what the conditions are for; [permitted]
// holds them to what the functions ask for.
func TestFunctionsReachNoOtherItems(t *testing.T) {
	const org = "ORG#0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00#"
	for function, refused := range map[string][]access{
		"authorizer": {
			{"dynamodb:UpdateItem", org + "DEV"},
			{"dynamodb:UpdateItem", "RATE#key"},
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:GetItem", "IDX#x#orders"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:PutItem", "KEY#text"},
			{"dynamodb:BatchGetItem", org + "COUNTERS"},
		},
		"developers": {
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:Query", org + "EVENT#0"},
			{"dynamodb:GetItem", org + "PAYLOAD#x"},
			{"dynamodb:GetItem", "IDX#x#orders"},
			{"dynamodb:PutItem", "ORGANIZATIONS"},
		},
		"receipts": {
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:Query", org + "EVENT#0"},
			{"dynamodb:Query", org + "REQUEST#x"},
			{"dynamodb:PutItem", org + "PRODUCT#0"},
		},
		"webhooks": {
			{"dynamodb:Query", org + "PRODUCT#0"},
			{"dynamodb:UpdateItem", org + "CUSTOMER#0"},
			{"dynamodb:PutItem", org + "ORDER#0"},
			{"dynamodb:GetItem", org + "KEYS#x"},
			{"dynamodb:PutItem", "KEY#text"},
			{"dynamodb:GetItem", "CLIENT#x"},
			{"dynamodb:GetItem", "SIGNING"},
		},
		"api": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:GetItem", "SIGNING"},
			{"dynamodb:GetItem", org + "DEV"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:GetItem", org + "PAYLOAD#x"},
			{"dynamodb:Query", org + "EVENT#0"},
			{"dynamodb:GetItem", org + "REQUEST#x"},
			{"dynamodb:Query", "ORGANIZATIONS"},
			{"dynamodb:UpdateItem", org + "PRODUCT#0"},
			{"dynamodb:UpdateItem", "IDX#x#orders"},
			{"dynamodb:PutItem", org + "PRODUCT#0"},
			{"dynamodb:PutItem", "RATE#x"},
		},
		"ingest": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:BatchGetItem", org + "DEV"},
			{"dynamodb:PutItem", org + "SENDERS"},
			{"dynamodb:PartiQLInsert", org + "DEV"},
			{"dynamodb:PartiQLInsert", "KEY#text"},
		},
		"dispatcher": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:Query", org + "KEYS#x"},
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:PutItem", org + "DEV"},
			{"dynamodb:GetItem", org + "DEV#GRANTS#x"},
			{"dynamodb:PartiQLInsert", "KEY#text"},
		},
		"indexer": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:GetItem", "CLIENT#x"},
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:Query", org + "KEYS#x"},
			{"dynamodb:PutItem", "RATE#x"},
		},
		"worker": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:BatchGetItem", "KEY#text"},
			{"dynamodb:GetItem", "CLIENT#x"},
			{"dynamodb:BatchGetItem", "CLIENT#x"},
			{"dynamodb:GetItem", "SIGNING"},
			{"dynamodb:Query", org + "KEYS#x"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:Query", "ORGANIZATIONS"},
			{"dynamodb:GetItem", org + "ORDER#0"},
			{"dynamodb:GetItem", org + "REQUEST#x"},
			{"dynamodb:PutItem", "KEY#text"},
			{"dynamodb:PutItem", org + "DEV"},
			{"dynamodb:GetItem", org + "DEV#GRANTS#x"},
			{"dynamodb:PutItem", org + "COUNTERS"},
			{"dynamodb:PartiQLUpdate", "CLIENT#x"},
			{"dynamodb:DeleteItem", org + "EVENT#0"},
		},
		"sweeper": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:GetItem", "CLIENT#x"},
			{"dynamodb:Query", org + "KEYS#x"},
			{"dynamodb:GetItem", org + "PAYLOAD#x"},
			{"dynamodb:PutItem", org + "PRODUCT#0"},
		},
	} {
		permissions := dynamotest.Model(t).Functions[function].Permissions
		for _, a := range refused {
			t.Run(function+" "+a.action+" "+a.key, func(t *testing.T) {
				if slices.ContainsFunc(permissions, func(p template.Permission) bool { return covers(p, a.action, a.key) }) {
					t.Error("is permitted")
				}
			})
		}
	}
}
