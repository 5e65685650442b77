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
