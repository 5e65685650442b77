package webhook

import (
	"fmt"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json"
)

// Ref is the body of a delivery's queue message: the row, and the keys of
// what an attempt needs beside it, so that one read gets everything.
type DeliveryRef struct {
	OrganizationID value.ID `json:"organizationId"`
	DeliveryID     value.ID `json:"rowId"`
	EventID        value.ID `json:"eventId"`
	EndpointID     value.ID `json:"endpointId"`
	ApplicationID  value.ID `json:"applicationId"`
	// As is the message that this one replaces, by the id that the row may
	// know as its carrier; "" when it replaces none.
	As string `json:"as,omitzero"`
}

// Ref names the row to the worker.
func (r *Delivery) Ref() DeliveryRef {
	return DeliveryRef{
		OrganizationID: r.OrganizationID, DeliveryID: r.ID, EventID: r.EventID,
		EndpointID: r.EndpointID, ApplicationID: r.ApplicationID,
	}
}

// Names reports whether the reference is to the row.
func (r DeliveryRef) Names(row *Delivery) bool {
	r.As = ""
	return row.Ref() == r
}

// Body writes the message.
func (r DeliveryRef) Body() string {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts that the service made
	}
	return string(body)
}

// ParseRef reads a message that Body wrote.
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
