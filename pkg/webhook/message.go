package webhook

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// CarriedFor is how long what a message carries is good: what an owner changes
	// of an endpoint or an application acts within this time.
	CarriedFor = 5 * time.Second
	// MaxCarriedPayload is the largest payload, in bytes, that a message carries.
	MaxCarriedPayload = 32 << 10
)

// DeliveryRef names a delivery, with the keys of everything that an attempt needs,
// so that one read gets it.
type DeliveryRef struct {
	OrganizationID value.ID `json:"organizationId"`
	DeliveryID     value.ID `json:"rowId,omitzero"` // the name in messages, which outlive a deployment
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

// DeliveryMessage is the body of a delivery's queue message. The first message of
// a delivery may carry what its attempt needs, so that the worker reads nothing, and
// the delivery itself, which is not stored yet; the endpoint's secrets are sealed in it.
type DeliveryMessage struct {
	DeliveryRef

	Carried *Carried `json:"carried,omitzero"`
}

// Carried is what an attempt needs, as it was at a time.
type Carried struct {
	At          value.Time       `json:"at"`
	Delivery    *Delivery        `json:"delivery"`
	Endpoint    *Endpoint        `json:"endpoint"`
	Application ApplicationState `json:"application"`
	Payload     string           `json:"payload"`
}

// Carry returns what the message of a new delivery, which is not stored, carries; nil
// when the worker must read it: the payload is large, or the endpoint's routing, which
// is not part of its doc, is not the usual one.
func Carry(d *Delivery, e *Endpoint, application ApplicationState, payload []byte, at value.Time) *Carried {
	if len(payload) > MaxCarriedPayload || e.Unsettled() {
		return nil
	}
	return &Carried{At: at, Delivery: d.StoredAt(0), Endpoint: e, Application: application, Payload: string(payload)}
}

// Unstored is the delivery that the message carries; nil for none. The messages of an
// earlier release carry a stored one.
func (m *DeliveryMessage) Unstored() *Delivery {
	if m.Carried == nil || m.Carried.Delivery == nil || !m.Names(m.Carried.Delivery) {
		return nil
	}
	return m.Carried.Delivery
}

// Input is what the message carries, as far as it is good at now, and until when it
// is.
func (m *DeliveryMessage) Input(now value.Time) (in DeliveryInput, until value.Time) {
	c, d := m.Carried, m.Unstored()
	if d == nil || c.Endpoint == nil || now >= c.At.Add(CarriedFor) {
		return DeliveryInput{}, 0
	}
	in = DeliveryInput{Delivery: d, Payload: []byte(c.Payload), Endpoint: c.Endpoint, Application: c.Application}
	return in, c.At.Add(CarriedFor)
}

// Body writes the message. The id of a delivery that the message carries is in the
// delivery alone: a worker of a release that looks for it in the table cannot read the
// message, and leaves it to another.
func (m DeliveryMessage) Body() string {
	if m.Unstored() != nil {
		m.DeliveryID = value.ID{}
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(err) // values that the service made
	}
	return string(body)
}

var errDeliveryMessage = errors.New("delivery message")

// ParseDeliveryMessage reads a message that Body wrote. Its errors do not show the
// message, which may hold a payload.
func ParseDeliveryMessage(body string) (DeliveryMessage, error) {
	var m DeliveryMessage
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return DeliveryMessage{}, fmt.Errorf("%w of %d bytes: it is malformed", errDeliveryMessage, len(body))
	}
	if d := m.Carried; d != nil && d.Delivery != nil && m.DeliveryID.IsZero() {
		m.DeliveryID = d.Delivery.ID
	}
	if m.OrganizationID.IsZero() || m.DeliveryID.IsZero() || m.EventID.IsZero() || m.EndpointID.IsZero() || m.ApplicationID.IsZero() {
		return DeliveryMessage{}, fmt.Errorf("%w of %d bytes: an identifier is missing", errDeliveryMessage, len(body))
	}
	return m, nil
}
