package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/webhook"
)

// table is the service's own table.
func (s *service) table(t *testing.T) (*dynamo.Table, value.ID) {
	t.Helper()
	local := target{data: s.data, organization: value.MustID(s.OrganizationID)}
	table, org, err := local.openOrganization(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return table, org
}

// startWithClock runs a service of its own in this process, whose sweeper
// runs when the test ticks.
func startWithClock(t *testing.T, ticks <-chan time.Time) *service {
	t.Helper()
	s := &service{data: t.TempDir()}
	if err := shareBinary(t.Context(), s.data); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan *runner.Info, 1), make(chan error, 1)
	ctx, end := context.WithCancel(context.Background())
	go func() {
		ended <- runner.Run(ctx, runner.Config{
			Addr: "127.0.0.1:0", DataDir: s.data, Template: "../../../template.yaml", NoDemo: true, PrivateTargets: true,
			Logger: slog.New(slog.DiscardHandler), Ready: func(info *runner.Info) { ready <- info },
			Ticks: func(every time.Duration) (<-chan time.Time, func()) {
				if every != time.Minute {
					t.Errorf("the sweeper's schedule: got every %s, want every minute", every)
				}
				return ticks, func() {}
			},
		})
	}()
	select {
	case s.Info = <-ready:
	case err := <-ended:
		t.Fatalf("the service did not start: %v", err)
	}
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("the service ended: %v", err)
		}
	})
	return s
}

// storeDelivery stores a delivery of a new event for the receiver's endpoint, PENDING
// and without a message that brings it.
func (s *service) storeDelivery(t *testing.T, r *receiver, change func(*webhook.Delivery)) *webhook.Delivery {
	t.Helper()
	table, org := s.table(t)
	endpoint, err := table.Endpoint(t.Context(), org, value.MustID(r.endpoint))
	if err != nil || endpoint == nil {
		t.Fatal(endpoint, err)
	}
	now := value.TimeOf(time.Now())
	event := &commerce.WebhookPayload{
		ID: value.NewID(), Type: "order.created", Timestamp: now, OrganizationID: org,
		Data: commerce.WebhookData{Object: []byte(`{"id":"` + value.NewID().String() + `"}`), PreviousAttributes: []byte("null")},
	}
	body, err := event.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.PutPayload(t.Context(), org, event.ID, body); err != nil {
		t.Fatal(err)
	}
	delivery := webhook.NewDelivery(event, endpoint, "", now)
	change(delivery)
	if existing, err := table.CreateDelivery(t.Context(), delivery); existing != nil || err != nil {
		t.Fatal(existing, err)
	}
	return delivery
}

func TestALongRetryIsSentWhenItIsDue(t *testing.T) {
	t.Parallel()
	ticks := make(chan time.Time)
	s := startWithClock(t, ticks)
	r := s.subscribe(t, "order.created")
	// It has failed three times and waits for a retry that no message carries.
	delivery := s.storeDelivery(t, r, func(delivery *webhook.Delivery) {
		due := value.TimeOf(time.Now().Add(-time.Minute))
		delivery.AttemptCount, delivery.NextAttemptAt, delivery.DueAt = 3, &due, &due
	})
	ticks <- time.Now()
	await(t, "the delivery", func() bool { return len(r.Events()) == 1 })
	var shown map[string]any
	await(t, "the delivery as delivered", func() bool {
		time.Sleep(100 * time.Millisecond)
		s.history(t, "/developers/webhooks/events/"+delivery.ID.String(), &shown)
		return shown["status"] == "DELIVERED"
	})
	if shown["attemptCount"] != 4.0 {
		t.Errorf("attempts: got %v, want 4", shown["attemptCount"])
	}
}
