// Package webhooks answers the operations on webhook endpoints, the history
// of their events and the catalogue of event types. An id of another organization
// is answered exactly as one that does not exist, an update applies to the very
// state that If-Match named, and only the answer that makes a secret shows it.
// An application's token manages what belongs to that application, and so does that of
// a portal session, but for its alerts; whatever else
// the organization has is answered as if it did not exist, too.
// The worker sends: an operation that asks for a delivery answers as soon as
// the delivery is stored to be sent.
package webhooks

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
)

const tag = "Webhooks"

// EndpointStore keeps endpoints.
type EndpointStore interface {
	// CreateEndpoint may answer a fault limit_reached, not_found when the
	// application is absent, or conflict when it has an alert URL already.
	CreateEndpoint(ctx context.Context, e *webhook.Endpoint, kept ...*idempotency.Kept) error
	// Endpoint returns nil when there is none.
	Endpoint(ctx context.Context, organization, id value.ID) (*webhook.Endpoint, error)
	Endpoints(ctx context.Context, organization value.ID) ([]*webhook.Endpoint, error)
	// AlertURL returns the endpoint of the application's alerts, nil when there
	// is none.
	AlertURL(ctx context.Context, organization, application value.ID) (*webhook.Endpoint, error)
	// ChangeEndpoint stores what change makes of the endpoint, unless that is
	// the same one, and returns it; nil when there is none.
	ChangeEndpoint(ctx context.Context, organization, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error)
	// DeleteEndpoint reports whether there was one. check sees it first and sets who
	// deletes it; an error of check keeps it.
	DeleteEndpoint(ctx context.Context, organization, id value.ID, check func(*webhook.Endpoint) error) (bool, error)
	Counters(ctx context.Context, organization value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error)
	// Stats are the hours in which the endpoint counted something and that
	// start in [from, to).
	Stats(ctx context.Context, organization, endpoint value.ID, from, to value.Time) ([]*webhook.HourStats, error)
}

// EventStore keeps the history.
type EventStore interface {
	// Delivery returns nil when there is none.
	Delivery(ctx context.Context, organization, id value.ID) (*webhook.Delivery, error)
	Deliveries(ctx context.Context, organization value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
	// Redeliver stores what change makes of the delivery and of its endpoint's
	// circuit, which may stay, and returns the delivery; nil when one of the two is
	// gone.
	Redeliver(ctx context.Context, organization, endpoint, id value.ID,
		change func(*webhook.Endpoint, *webhook.Delivery) (*webhook.Circuit, *webhook.Delivery, error)) (*webhook.Delivery, error)
	PutPayload(ctx context.Context, organization, event value.ID, body []byte) error
	Payload(ctx context.Context, organization, event value.ID) ([]byte, error)
	// EventualDeliveries and Origin may miss writes of the last second.
	EventualDeliveries(ctx context.Context, organization value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error)
	// Origin reads the object's record, of one of the kinds, nil when there is
	// none, and the payloads of events.
	Origin(ctx context.Context, organization, object value.ID, kinds []commerce.Kind, events []value.ID) (*commerce.Stored, map[value.ID][]byte, error)
}

// RecoveryStore keeps recoveries, and reads applications.
type RecoveryStore interface {
	// CreateRecovery may answer a fault conflict, or not_found when the
	// endpoint is gone.
	CreateRecovery(ctx context.Context, r *webhook.Recovery, next value.Time) error
	// Recovery returns nil when there is none.
	Recovery(ctx context.Context, organization, endpoint, id value.ID) (*webhook.Recovery, error)
	// Application returns nil when there is none.
	Application(ctx context.Context, organization, id value.ID) (*account.Application, error)
}

// Store keeps all of them.
type Store interface {
	EndpointStore
	EventStore
	RecoveryStore
}

// History answers the list of events.
type History interface {
	// Query asks the organization's list of [webhook.DeliveryList], with now what
	// its index has at the time of the query.
	Query(ctx context.Context, organization value.ID, q columnar.Query, now bool) (lists.Answer, error)
	// QueryWeighed first asks admit, which gets the read units that the index takes.
	QueryWeighed(ctx context.Context, organization value.ID, q columnar.Query, now bool, admit func(units int) error) (lists.Answer, error)
}

// Sender sends deliveries to the worker.
type Sender interface {
	// Send sends the deliveries in the lane, each for its next attempt.
	Send(ctx context.Context, lane webhook.Lane, now value.Time, deliveries ...*webhook.Delivery) error
}

// Backlog works on at most limit of an endpoint's HELD and FAILED deliveries.
type Backlog interface {
	Recover(ctx context.Context, r *webhook.Recovery, limit int) (*webhook.Recovery, error)
	Cancel(ctx context.Context, organization, endpoint value.ID, limit int) error
	// Probe sends one that the endpoint's circuit holds.
	Probe(ctx context.Context, e *webhook.Endpoint) error
}

// Config configures the operations.
type Config struct {
	Clock   func() time.Time
	History History
	Sender  Sender
	Backlog Backlog
	// Seal encrypts a secret for a purpose.
	Seal func(plain []byte, purpose string) string
	// Rules say which endpoints are allowed.
	Rules webhook.Rules
}

// area holds what the operations share.
type area struct {
	store Store
	cfg   Config
}

func (a *area) now() value.Time { return value.TimeOf(a.cfg.Clock()) }

// Operations returns every operation of this area.
func Operations(store Store, cfg Config) []api.Operation {
	a := &area{store: store, cfg: cfg}
	operations := append(a.endpointOperations(), a.actionOperations()...)
	operations = append(operations, a.deliveryOperations()...)
	operations = append(operations, a.eventOperations()...)
	operations = append(operations, a.alertOperations()...)
	operations = append(operations, a.statsOperation(), a.traceOperation(), catalogueOperation())
	for i := range operations {
		op := &operations[i]
		op.Tag, op.Access = tag, cmp.Or(op.Access, api.Subscriber)
		if op.Scope == "" {
			op.Scope = auth.WebhooksRead
		}
		if strings.HasPrefix(op.Path, endpointPath) {
			op.Params = append([]api.Param{itemParam()}, op.Params...)
		}
	}
	return operations
}

// manages reports whether the caller may know of what belongs to the
// application: a user of every one, an application of its own only.
func manages(r *api.Request, application value.ID) bool {
	return r.Principal.Kind != auth.KindApplication || r.Principal.ApplicationID == application
}

// sees reports whether the caller may know of the endpoint. A portal session does not
// of an alert URL.
func sees(r *api.Request, e *webhook.Endpoint) bool {
	return manages(r, e.ApplicationID) && !(e.Alerts && r.Principal.OfPortal())
}

const applicationParam = "applicationId"

// itemParam names the endpoint's application, as a check of its id.
func itemParam() api.Param {
	return api.Param{
		Name: applicationParam, In: fault.InQuery, Type: "string", Format: "uuid",
		Description: "The endpoint's application; another is answered 404.",
	}
}
