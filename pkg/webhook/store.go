package webhook

import "github.com/commerce-integration/service/pkg/value"

// Delivery is what an attempt needs, as one read found it.
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

// DueKind tells what a due mark is of.
type DueKind uint8

// The kinds of due mark.
const (
	DueDelivery DueKind = iota // a row whose next attempt comes near
	DueRecovery                // a recovery that goes on
	DueDeletion                // an endpoint that was deleted, whose rows are to be cancelled
	DueCircuit                 // an endpoint whose circuit is to be probed or drained
)

// Due is something that the sweeper has to look at.
type Due struct {
	Kind           DueKind
	OrganizationID value.ID
	ID             value.ID // of the row, the recovery or the endpoint
	EndpointID     value.ID // of a recovery
	Mark           string   // the mark as found, on which moving it is conditional
}

// Unsent names a HELD or FAILED row of an endpoint.
type UnsentDelivery struct {
	OrganizationID value.ID
	DeliveryID     value.ID
	Cursor         string // to go on behind it
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
	Number   int   // below [MaxCounterShards]
	Revision int64 // rises by one with every write; 0: there is none yet
	Shard    *CounterShard
}

// CounterShardWrite is the next state of a counter shard, provided that it
// still has the revision that was read.
type CounterShardWrite struct {
	OrganizationID value.ID
	EndpointID     value.ID
	Number         int
	Revision       int64 // as it was read
	Next           *CounterShard
	Finished       *HourStats // kept from now on; nil while the hour goes on
}

// WriteConflict tells why nothing was written: the current state, by the
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
