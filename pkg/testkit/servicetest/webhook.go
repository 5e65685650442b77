package servicetest

import (
	"errors"
	"strconv"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Endpoint stores an endpoint of the application that subscribes to the given
// types. Nothing answers at its URL.
func (s *Service) Endpoint(t testing.TB, subscribed ...string) *webhook.Endpoint {
	t.Helper()
	url := "https://example.com/hook"
	e, _ := s.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &url, Events: &subscribed})
	return e
}

// NewEndpoint stores an endpoint of the application and returns it with its
// secret.
func (s *Service) NewEndpoint(t testing.TB, dto webhook.CreateWebhookEndpointDto) (e *webhook.Endpoint, secret string) {
	t.Helper()
	e, secret = webhook.NewEndpoint(s.Org, s.App, dto, s.Box.Seal, s.Now())
	s.Leaks.Made(secret)
	if err := s.Table.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e, secret
}

// StoredEndpoint reads an endpoint.
func (s *Service) StoredEndpoint(t testing.TB, id value.ID) *webhook.Endpoint {
	t.Helper()
	e, err := s.Table.Endpoint(t.Context(), s.Org, id)
	if e == nil || err != nil {
		t.Fatalf("endpoint %s: %+v, %v", id, e, err)
	}
	return e
}

// ChangeEndpoint changes an endpoint's configuration.
func (s *Service) ChangeEndpoint(t testing.TB, id value.ID, change func(*webhook.Endpoint)) {
	t.Helper()
	if _, err := s.Table.ChangeEndpoint(t.Context(), s.Org, id, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		next := *e
		change(&next)
		next.UpdatedAt = e.UpdatedAt + 1
		return &next, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// ChangeDelivery changes a delivery and returns it.
func (s *Service) ChangeDelivery(t testing.TB, id value.ID, change func(*webhook.Delivery) *webhook.Delivery) *webhook.Delivery {
	t.Helper()
	d, err := s.Table.Delivery(t.Context(), s.Org, id)
	if err != nil {
		t.Fatal(err)
	}
	next := change(d)
	if _, err := s.Table.PutDelivery(t.Context(), d, next); err != nil {
		t.Fatal(err)
	}
	return next
}

// SetStatus sets an endpoint's status.
func (s *Service) SetStatus(t testing.TB, id value.ID, status webhook.Status) {
	t.Helper()
	s.ChangeEndpoint(t, id, func(e *webhook.Endpoint) { e.Status = status })
}

// SetRouting changes an endpoint's lane and circuit.
func (s *Service) SetRouting(t testing.TB, id value.ID, change func(*webhook.Routing)) {
	t.Helper()
	before := s.StoredEndpoint(t, id).Routing()
	next := before
	change(&next)
	if set, err := s.Table.SetRouting(t.Context(), s.Org, id, before, next); !set || err != nil {
		t.Fatalf("SetRouting(%+v): %t, %v", next, set, err)
	}
}

// DeleteEndpoint deletes an endpoint.
func (s *Service) DeleteEndpoint(t testing.TB, id value.ID) {
	t.Helper()
	if _, err := s.Table.DeleteEndpoint(t.Context(), s.Org, id, func(*webhook.Endpoint) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// Count adds attempts to the tally of the endpoint, each the first of an event.
func (s *Service) Count(t testing.TB, endpoint value.ID, now value.Time, attempts ...webhook.Attempt) {
	t.Helper()
	tally, err := s.Table.Tally(t.Context(), s.Org, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	d := &webhook.Delivery{OrganizationID: s.Org, ApplicationID: s.App, EndpointID: endpoint}
	outcomes := make([]webhook.StreamOutcome, len(attempts))
	for i, a := range attempts {
		result := webhook.AttemptSucceeded
		if a.Error != nil {
			result = webhook.AttemptFailed
		}
		next := d.Record(webhook.Outcome{Attempt: a, Result: result}, "", webhook.MaxRetryCount, 0, now)
		outcomes[i] = webhook.StreamOutcome{Previous: d, Next: next, Shard: tally.Revision, Sequence: strconv.Itoa(i + 1), At: now}
	}
	next, finished := tally.Count(outcomes, 0)
	if _, done, err := s.Table.PutTally(t.Context(), d, next, finished); !done || err != nil {
		t.Fatalf("PutTally: %t, %v", done, err)
	}
}

// Event stores the payload of a new order.created event about the object, which
// is JSON.
func (s *Service) Event(t testing.TB, object string) *commerce.WebhookPayload {
	t.Helper()
	payload := &commerce.WebhookPayload{
		ID: value.NewID(), Type: "order.created", APIVersion: commerce.APIVersion, Timestamp: s.Now(), OrganizationID: s.Org, ObjectID: value.NewID(),
		Data: commerce.WebhookData{Object: []byte(object), PreviousAttributes: []byte("null")},
	}
	body, err := payload.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Table.PutPayload(t.Context(), s.Org, payload.ID, body); err != nil {
		t.Fatal(err)
	}
	return payload
}

// Deliveries stores n pending deliveries for the endpoint, of events whose
// payloads are not stored, after change, unless it is nil, has had each.
func (s *Service) Deliveries(t testing.TB, e *webhook.Endpoint, n int, change func(i int, d *webhook.Delivery)) []*webhook.Delivery {
	t.Helper()
	deliveries := make([]*webhook.Delivery, n)
	for i := range deliveries {
		deliveries[i] = webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, e, "", s.Now())
		if change != nil {
			change(i, deliveries[i])
		}
	}
	if existing, _, err := s.Table.CreateDeliveries(t.Context(), deliveries); err != nil {
		t.Fatalf("CreateDeliveries: %+v, %v", existing, err)
	}
	return deliveries
}

// TakeMessages takes the messages of the main queue, and stores the deliveries that
// only they have, as the worker does.
func (s *Service) TakeMessages(t testing.TB) (all []events.SQSMessage) {
	t.Helper()
	for {
		messages := s.Queues().Receive(t, MainQueue)
		if len(messages) == 0 {
			return all
		}
		for _, m := range messages {
			message, err := webhook.ParseDeliveryMessage(m.Body)
			if d := message.Unstored(); d != nil && err == nil {
				_, err = s.Table.PutDelivery(t.Context(), d, d.StoredAt(s.Now()))
			}
			if err != nil && !errors.Is(err, fault.ErrChanged) {
				t.Fatal(err)
			}
		}
		s.Queues().Delete(t, MainQueue, messages...)
		all = append(all, messages...)
	}
}

// StoredDelivery reads a delivery.
func (s *Service) StoredDelivery(t testing.TB, id value.ID) *webhook.Delivery {
	t.Helper()
	d, err := s.Table.Delivery(t.Context(), s.Org, id)
	if d == nil || err != nil {
		t.Fatalf("delivery %s: %+v, %v", id, d, err)
	}
	return d
}

// AllDeliveries reads the organization's deliveries.
func (s *Service) AllDeliveries(t testing.TB) []*webhook.Delivery {
	t.Helper()
	var found []*webhook.Delivery
	if err := ops.EachDelivery(t.Context(), s.Table, s.Org, func(d *webhook.Delivery) error {
		found = append(found, d)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}
