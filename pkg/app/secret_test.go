package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const serviceKeySecret = "arn:aws:secretsmanager:eu-central-1:1:secret:ServiceKey"

// withSecretsManager are dependencies whose service key is a secret of the
// manager, and whose queues are the service's.
func withSecretsManager(s *servicetest.Service, manager *servicetest.SecretsManager) *app.Dependencies {
	cfg := dependenciesOf(s).Config
	cfg.ServiceKey, cfg.ServiceKeySecretARN, cfg.AllowPrivateTargets = nil, serviceKeySecret, true
	sdk := manager.Config()
	sdk.ConfigSources = []any{app.ServiceEndpoints(environment("AWS_ENDPOINT_URL_SQS", *s.Queues().Client.Options().BaseEndpoint))}
	d := app.NewDependencies(cfg, sdk, s.Leaks.Logger())
	d.Table, d.Clock = s.Table, s.Time
	return d
}

func boxOf(t *testing.T, manager *servicetest.SecretsManager) *sealed.Box {
	t.Helper()
	keys, _, err := app.ServiceKeys(t.Context(), manager.Config(), serviceKeySecret)
	if err != nil {
		t.Fatal(err)
	}
	box, err := sealed.NewBox(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// workOnce has the worker handle one delivery, and reports whether it stays in the
// queue.
func workOnce(t *testing.T, s *servicetest.Service, work app.QueueFunc, e *webhook.Endpoint) (id value.ID, stays bool) {
	t.Helper()
	d := webhook.NewDelivery(s.Event(t, `{}`), e, "", s.Now())
	if existing, _, err := s.Table.CreateDeliveries(t.Context(), []*webhook.Delivery{d}); err != nil {
		t.Fatalf("CreateDeliveries: %+v, %v", existing, err)
	}
	if err := s.Queues().Deliveries().Send(t.Context(), webhook.LaneMain, s.Now(), d); err != nil {
		t.Fatal(err)
	}
	messages := s.Queues().Await(t, servicetest.MainQueue)
	answer, err := work(t.Context(), events.SQSEvent{Records: messages})
	if err != nil {
		t.Fatal(err)
	}
	s.Queues().Delete(t, servicetest.MainQueue, messages...)
	return d.ID, len(answer.BatchItemFailures) > 0
}

// TestARotatedServiceKeyNeedsNoRestartAndLosesNoDelivery has a worker that
// started before the rotation deliver what was sealed before and after it.
func TestARotatedServiceKeyNeedsNoRestartAndLosesNoDelivery(t *testing.T) {
	s := servicetest.New(t)
	s.Set(time.Now())
	manager := servicetest.NewSecretsManager(t, s.Time)
	manager.Put(serviceKeySecret, strings.Repeat("first", 13))
	s.Box = boxOf(t, manager)
	var verified atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Signature") != "" {
			verified.Add(1)
		}
	}))
	defer receiver.Close()
	endpoint := func() *webhook.Endpoint {
		e, _ := s.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &receiver.URL, Events: &[]string{"order.created"}})
		return e
	}
	before := endpoint()
	work, err := app.Worker(t.Context(), withSecretsManager(s, manager))
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(e *webhook.Endpoint) (stays bool) {
		t.Helper()
		id, stays := workOnce(t, s, work, e)
		if got := s.StoredDelivery(t, id); !stays && got.Status != webhook.DeliveryDelivered {
			t.Errorf("the delivery is %s, want it DELIVERED", got.Status)
		}
		return stays
	}
	if deliver(before) {
		t.Fatal("the delivery before the rotation stays")
	}
	manager.Put(serviceKeySecret, strings.Repeat("second", 11))
	s.Box = boxOf(t, manager)
	after := endpoint()
	manager.Away(true)
	if !deliver(after) {
		t.Error("a delivery whose secret cannot be opened does not stay in the queue")
	}
	manager.Away(false)
	s.Set(s.Time().Add(time.Minute))
	if deliver(after) || deliver(before) {
		t.Error("a delivery after the rotation stays")
	}
	if n := verified.Load(); n != 3 {
		t.Errorf("%d signed deliveries, want 3", n)
	}
}

func TestServiceKeysOfTheEnvironmentAreOneOrTwo(t *testing.T) {
	one, two := strings.Repeat("A", 43)+"=", "/"+strings.Repeat("A", 42)+"="
	for text, want := range map[string]int{"": 0, one: 1, one + " " + two: 2} {
		t.Run(text, func(t *testing.T) {
			cfg, err := app.ConfigFrom(environment("TABLE_NAME", "t", "SERVICE_KEY", text))
			if err != nil || (cfg.ServiceKey != nil) != (want > 0) || (cfg.OlderServiceKey != nil) != (want > 1) {
				t.Errorf("got %d and %d bytes, %v; want %d keys", len(cfg.ServiceKey), len(cfg.OlderServiceKey), err, want)
			}
		})
	}
	for _, text := range []string{"x", one[1:], one + " " + one[1:], one + " " + two + " " + one} {
		t.Run(text, func(t *testing.T) {
			if _, err := app.ConfigFrom(environment("TABLE_NAME", "t", "SERVICE_KEY", text)); err == nil || !strings.Contains(err.Error(), "SERVICE_KEY") {
				t.Errorf("got %v, want an error that names the variable", err)
			}
		})
	}
}
