package webhook

import "github.com/commerce-integration/service/pkg/base/value"

// DeliveryInput is what an attempt needs, as one read found it.
type DeliveryInput struct {
	Delivery    *Delivery // nil: expired
	Payload     []byte    // nil: expired
	Endpoint    *Endpoint // nil: deleted
	Application ApplicationState
}

// MaySend is [MaySend] of the delivery: a test waits for nothing, and a probe not
// for the circuit.
func (in *DeliveryInput) MaySend() (hold HeldReason, gone bool) {
	hold, gone = MaySend(in.Endpoint, in.Application)
	if in.Delivery.Test || in.Delivery.Probe && hold == HeldCircuitOpen {
		hold = ""
	}
	return hold, gone
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
