package webhook

import (
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// EventOutcome tells what became of an event at an endpoint: the status of its
// delivery, or why there is none.
type EventOutcome string

// The reasons why an event has no delivery to an endpoint.
const (
	EventBeforeEndpoint EventOutcome = "CREATED_LATER"
	EventNotSubscribed  EventOutcome = "NOT_SUBSCRIBED"
	EventBeforeChange   EventOutcome = "CHANGED_SINCE"
)

// Values lists every outcome.
func (EventOutcome) Values() []string {
	return append(DeliveryStatus("").Values(), string(EventBeforeEndpoint), string(EventNotSubscribed), string(EventBeforeChange))
}

// WhyNotDelivered tells why an event of the type, whose deliveries were created
// at the time, has none to the endpoint, by the endpoint's configuration as it is.
func WhyNotDelivered(e *Endpoint, eventType string, created value.Time) EventOutcome {
	switch {
	case e.CreatedAt > created:
		return EventBeforeEndpoint
	case !commerce.Matches(e.SubscribedEvents, eventType):
		return EventNotSubscribed
	}
	return EventBeforeChange
}

// EventlessReason tells why a record's last change has no event in the history.
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
