package webhook

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// DeliveryRef is the body of a delivery's queue message: the keys of
// everything that an attempt needs, so that one read gets it.
type DeliveryRef struct {
	OrganizationID value.ID `json:"organizationId"`
	DeliveryID     value.ID `json:"rowId"` // the name in messages, which outlive a deployment
	EventID        value.ID `json:"eventId"`
	EndpointID     value.ID `json:"endpointId"`
	ApplicationID  value.ID `json:"applicationId"`
	// As is the delivery's name for the message that this one replaces; ""
	// when it replaces none.
	As string `json:"as,omitzero"`
}

// Ref names the delivery to the worker.
func (d *Delivery) Ref() DeliveryRef {
	return DeliveryRef{
		OrganizationID: d.OrganizationID, DeliveryID: d.ID, EventID: d.EventID,
		EndpointID: d.EndpointID, ApplicationID: d.ApplicationID,
	}
}

// Names reports whether the reference is to the delivery.
func (r DeliveryRef) Names(d *Delivery) bool {
	r.As = ""
	return d.Ref() == r
}

// Body writes the message.
func (r DeliveryRef) Body() string {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts that the service made
	}
	return string(body)
}

// ParseDeliveryRef reads a message that Body wrote.
func ParseDeliveryRef(body string) (DeliveryRef, error) {
	var r DeliveryRef
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		return DeliveryRef{}, fmt.Errorf("delivery message: %w", err)
	}
	if r.OrganizationID.IsZero() || r.DeliveryID.IsZero() || r.EventID.IsZero() || r.EndpointID.IsZero() || r.ApplicationID.IsZero() {
		return DeliveryRef{}, fmt.Errorf("delivery message %q: an identifier is missing", body)
	}
	return r, nil
}

// DeliveryInput is what an attempt needs, as one read found it.
type DeliveryInput struct {
	Delivery    *Delivery // nil: expired
	Payload     []byte    // nil: expired
	Endpoint    *Endpoint // nil: deleted
	Application ApplicationState
}

// Directory is an organization's endpoints and the state of its
// applications, as one read found them.
type Directory struct {
	Endpoints    []*Endpoint
	Applications map[value.ID]ApplicationState
}

// DueKind is the kind of object that a due mark is for.
type DueKind uint8

// The kinds of due mark.
const (
	DueDelivery DueKind = iota // a delivery whose next attempt comes near
	DueRecovery                // a recovery that goes on
	DueDeletion                // an endpoint that was deleted, whose deliveries are to be cancelled
	DueCircuit                 // an endpoint whose circuit is to be probed or drained
)

// Due is something that the sweeper has to look at.
type Due struct {
	Kind           DueKind
	OrganizationID value.ID
	ID             value.ID // of the delivery, the recovery or the endpoint
	EndpointID     value.ID // of a recovery
	At             value.Time
	Mark           string // the mark as found, on which moving it is conditional
}

// UnsentDelivery names a HELD or FAILED delivery of an endpoint.
type UnsentDelivery struct {
	DeliveryID value.ID
	Cursor     string // to go on behind it
}

// Payload is the body of an event's deliveries.
type Payload struct {
	OrganizationID value.ID
	EventID        value.ID
	Body           []byte
}

// MaxOutcomeWrites is the most writes that are recorded in one transaction:
// deliveries, counter shards and finished hours.
const MaxOutcomeWrites = 100

// DeliveryChange replaces a delivery, provided that it is still as it was
// read.
type DeliveryChange struct {
	Previous *Delivery // as it was read
	Next     *Delivery
}

// StoredCounterShard is a counter shard as a store keeps it.
type StoredCounterShard struct {
	Number   int   // up to [StreamShard]
	Revision int64 // rises by one with every write; 0: there is none yet
	Shard    *CounterShard
}

// CounterShardWrite is the next state of a counter shard, provided that it
// still has the revision that was read.
type CounterShardWrite struct {
	OrganizationID value.ID
	ApplicationID  value.ID
	EndpointID     value.ID
	Number         int
	Revision       int64 // as it was read
	Next           *CounterShard
	Finished       *HourStats // kept from now on; nil while the hour goes on
	FinishedDay    *EventDay  // likewise
}

// WriteConflict says why nothing was written: the current state, by the
// index of the write that met it.
type WriteConflict struct {
	// Deliveries are those that another writer has changed; nil: expired.
	Deliveries map[int]*Delivery
	// Recorded are the changes that an earlier call wrote, and counted, whose
	// answer was lost.
	Recorded map[int]bool
	// Shards are those that have another revision than was read.
	Shards map[int]StoredCounterShard
}
