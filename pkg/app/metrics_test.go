package app_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/app/metric"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// measured is a fixture with the dependencies of functions that measure.
type measured struct {
	*servicetest.Service
	base *app.Dependencies
	out  bytes.Buffer
}

func newMeasured(t *testing.T) *measured {
	t.Helper()
	w := &measured{Service: servicetest.New(t)}
	w.base = dependenciesOf(w.Service)
	w.base.Config.AllowPrivateTargets, w.base.Config.IndexJobsQueueURL, w.base.Config.ParkQueueURL = true, w.Queues().URL("IndexJobsQueue"), w.Queues().URL(servicetest.ParkQueue)
	w.base.Metrics = metric.New(&w.out, metric.Config{Namespace: "n", Function: "f", ByOrganization: true})
	return w
}

// taken are the function's metrics since the last call; of a measurement, how
// often.
func (w *measured) taken(t *testing.T, of string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(w.out.String()) {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if members["FunctionName"] != of && members["OrganizationId"] != of && members["Code"] != of {
			continue
		}
		for name, v := range members {
			switch v := v.(type) {
			case float64:
				found[name] += v
			case []any:
				found[name] += float64(len(v))
			}
		}
	}
	return found
}

// want compares some metrics of the function and of the organization.
func (w *measured) want(t *testing.T, of string, want map[string]float64) {
	t.Helper()
	got := w.taken(t, of)
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s of %s is %v, want %v (all: %v)", name, of, got[name], n, got)
		}
	}
}

func TestIngestCountsRecordsAndMeasuresItsQueue(t *testing.T) {
	w := newMeasured(t)
	handle, err := app.Ingest(t.Context(), permitted(t, w.Service, "ingest", w.base))
	if err != nil {
		t.Fatal(err)
	}
	body := func(record string) string {
		return `{"organizationId":"` + w.Org.String() + `","kind":"product","op":"put","record":` + record + `}`
	}
	sent := map[string]string{"SentTimestamp": strconv.FormatInt(w.Time().Add(-1500*time.Millisecond).UnixMilli(), 10)}
	answer, err := handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "1", Body: body(`{"id":"` + value.NewID().String() + `","name":"Sencha"}`), Attributes: sent},
		{MessageId: "2", Body: body(`{"name":7}`), Attributes: sent},
	}})
	if err != nil || len(answer.BatchItemFailures) > 0 {
		t.Fatalf("%+v, %v", answer, err)
	}
	w.want(t, "f", map[string]float64{"RecordsStored": 1, "RecordsRefused": 1, "QueueAge": 2})
	w.want(t, w.Org.String(), map[string]float64{"RecordsStored": 1, "QueueAge": 0})
	if !strings.Contains(w.out.String(), `"QueueAge":[1500`) {
		t.Errorf("want ages of 1,500 ms: %s", w.out.String())
	}
}

func TestChangesAndRequestsAreMeasured(t *testing.T) {
	w := newMeasured(t)
	index, err := app.Indexer(t.Context(), permitted(t, w.Service, "indexer", w.base))
	if err != nil {
		t.Fatal(err)
	}
	w.Put(t, commerce.KindProduct, nil, `{"id":"`+value.NewID().String()+`","name":"Sencha"}`, nil)
	w.Pass(2 * time.Second)
	if _, err := index(t.Context(), events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: w.StreamRecords(t, dynamo.StreamRecord)}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.out.String(), `"IndexAge":2000`) {
		t.Errorf("want an age of 2,000 ms: %s", w.out.String())
	}
	w.out.Reset()
	api, err := app.API(t.Context(), w.base)
	if err != nil {
		t.Fatal(err)
	}
	principal := auth.Principal{Kind: auth.KindUser, OrganizationID: w.Org, UserID: value.NewID(), Scopes: auth.Owner.Scopes(), RateLimit: 600, ExpiresAt: w.Time().Add(time.Hour)}
	ask := func(path string) int {
		w.Pass(time.Minute)
		event := events.APIGatewayProxyRequest{Path: path, HTTPMethod: http.MethodGet, Resource: path}
		servicetest.Authorize(&event, principal)
		answer, err := api(t.Context(), event)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode
	}
	if got := [2]int{ask("/api/products"), ask("/api/nothing")}; got != [2]int{200, 404} {
		t.Fatalf("answers %v: %s", got, w.out.String())
	}
	w.want(t, "f", map[string]float64{"Requests": 2, "ClientErrors": 1, "ServerErrors": 0})
	w.want(t, w.Org.String(), map[string]float64{"Requests": 2})
}

func TestTheWorkerCountsWhatItRecords(t *testing.T) {
	w := newMeasured(t)
	status := http.StatusOK
	receiver := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(status) }))
	defer receiver.Close()
	e, _ := w.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &receiver.URL, Events: &[]string{"order.created"}})
	work, err := app.Worker(t.Context(), permitted(t, w.Service, "worker", w.base))
	if err != nil {
		t.Fatal(err)
	}
	for _, status = range []int{http.StatusOK, http.StatusInternalServerError} {
		workOnce(t, w.Service, work, e)
		w.Pass(time.Minute)
	}
	w.want(t, "f", map[string]float64{"Delivered": 1, "Retried": 1, "Failed": 0})
	w.want(t, w.Org.String(), map[string]float64{"Delivered": 1, "Retried": 1})
}

func TestTheAuthorizerCountsRefusalsByCode(t *testing.T) {
	w := newMeasured(t)
	authorize, err := app.Authorizer(t.Context(), w.base)
	if err != nil {
		t.Fatal(err)
	}
	_, err = authorize(t.Context(), events.APIGatewayCustomAuthorizerRequestTypeRequest{
		Resource: "/api/products", MethodArn: "arn:aws:execute-api:r:0:api/prod/GET/api/products", Headers: map[string]string{"X-API-Key": "no"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.want(t, "f", map[string]float64{"CredentialsRefused": 1})
	w.want(t, "unauthenticated", map[string]float64{"CredentialsRefused": 1})
}
