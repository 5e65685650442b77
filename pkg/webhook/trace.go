package webhook

import (
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// EventOutcome says what became of an event at an endpoint: the status of its
// delivery, or why there is none.
type EventOutcome string

// The reasons why an event has no delivery to an endpoint.
const (
	EventBeforeEndpoint EventOutcome = "CREATED_LATER"
	EventNotSubscribed  EventOutcome = "NOT_SUBSCRIBED"
	EventFiltered       EventOutcome = "FILTERED"
	EventBeforeChange   EventOutcome = "CHANGED_SINCE"
)

// Values lists every outcome.
func (EventOutcome) Values() []string {
	return append(DeliveryStatus("").Values(), string(EventBeforeEndpoint), string(EventNotSubscribed), string(EventFiltered), string(EventBeforeChange))
}

// WhyNotDelivered says why the event, whose deliveries were created at the time,
// has none to the endpoint, by the endpoint's configuration as it is. Of a
// filtered one it gives the reason; no filter is asked about an event without
// its object.
func (c *Candidate) WhyNotDelivered(e *Endpoint, created value.Time) (outcome EventOutcome, reason string, err error) {
	switch {
	case e.CreatedAt > created:
		return EventBeforeEndpoint, "", nil
	case !commerce.Matches(e.SubscribedEvents, c.Type):
		return EventNotSubscribed, "", nil
	case c.Data.Object == nil:
		return EventBeforeChange, "", nil
	}
	if reason, err = c.Refusal(e); reason != "" {
		return EventFiltered, reason, nil
	}
	return EventBeforeChange, "", err
}

// EventlessReason says why a record's last change has no event in the history.
type EventlessReason string

// The reasons why a change has no event.
const (
	EventlessSilent  EventlessReason = "SILENT"
	EventlessRecent  EventlessReason = "RECENT"
	EventlessExpired EventlessReason = "EXPIRED"
	EventlessUnasked EventlessReason = "NOT_SUBSCRIBED"
)

// Values lists every reason.
func (EventlessReason) Values() []string {
	return []string{string(EventlessSilent), string(EventlessRecent), string(EventlessExpired), string(EventlessUnasked)}
}
