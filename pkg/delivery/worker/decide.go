package worker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// clockSkew is how much too early an attempt may be: the clocks of
	// instances differ a little, and a wait costs a second at least.
	clockSkew = time.Second
	// maxSendAhead is how far ahead an attempt may lie for a message that the
	// delivery does not name: the sweeper sends up to a minute before the time.
	maxSendAhead = 90 * time.Second
	// lostMessageTimeout is how late an attempt must be before a message that the
	// delivery does not name makes it, because the named one seems to be lost.
	// Until then the other stays in the queue: it may be all that is left.
	lostMessageTimeout = 2 * time.Minute
)

// action is what the worker does with a message.
type action uint8

const (
	acknowledge    action = iota // the event source deletes the message
	attemptNow                   // ask the receiver; the outcome gives the next disposition
	cancelDelivery               // end the delivery CANCELLED, then acknowledge
	holdDelivery                 // make the delivery HELD, then acknowledge
	replace                      // send another message in its place, then acknowledge
	retryLater                   // keep the message, invisible for a while
	failed                       // likewise, because the service itself failed
)

// disposition is an action and what it needs.
type disposition struct {
	action action
	wait   time.Duration      // of replace, retryLater and failed
	lane   webhook.Lane       // of replace: where the new message goes
	as     string             // of replace: the delivery's name for the message
	reason webhook.HeldReason // of holdDelivery
	err    error              // of failed
}

// decide chooses the disposition of a message from its input.
func decide(from origin, in webhook.DeliveryInput, now value.Time) disposition {
	d, e := in.Delivery, in.Endpoint
	if d == nil || !d.Pending() {
		return disposition{} // expired or ended
	}
	wait, needed := from.attemptIn(d, now)
	switch {
	case !needed:
		return disposition{}
	case wait > 0:
		return disposition{action: retryLater, wait: wait}
	}
	reason, gone := in.MaySend()
	switch {
	case gone:
		return disposition{action: cancelDelivery}
	case from.lane == webhook.LaneMain && e.Lane == webhook.LaneSlow:
		// Whatever comes next, it is the slow lane that waits for it.
		return moveToSlowLane(d)
	case reason != "":
		return disposition{action: holdDelivery, reason: reason}
	case in.Payload == nil:
		return disposition{action: failed, err: fmt.Errorf("the payload of event %s is missing", d.EventID)}
	}
	return disposition{action: attemptNow}
}

// decideNext chooses the disposition after an attempt by the delivery as it
// is then. A message stays when the next attempt is its own and no due mark
// takes care of it. When too many messages wait in the lane already, a
// delayed message replaces it.
func decideNext(from origin, d *webhook.Delivery, lane webhook.Lane, tooManyInFlight bool, now value.Time) disposition {
	if d == nil || !d.Pending() {
		return disposition{}
	}
	wait, needed := from.attemptIn(d, now)
	switch {
	case !needed:
		return disposition{}
	case tooManyInFlight && from.namedBy(d):
		return disposition{action: replace, wait: wait, lane: lane, as: d.MessageID}
	}
	return disposition{action: retryLater, wait: wait}
}

func moveToSlowLane(d *webhook.Delivery) disposition {
	return disposition{action: replace, lane: webhook.LaneSlow, as: d.MessageID}
}

// origin is where a message came from and how deliveries name it.
type origin struct {
	lane      webhook.Lane
	messageID string
	replaces  string // the name of the message that it was sent in place of
}

// attemptIn returns how long the message must wait until it may make the
// delivery's next attempt. It is not needed when a due mark takes care of the
// attempt. The present is not before the delivery's last change, although the
// clock of its writer may be ahead of this one: an attempt that was due then is
// due.
func (o origin) attemptIn(d *webhook.Delivery, now value.Time) (wait time.Duration, needed bool) {
	wait = d.NextAttemptAt.Std().Sub(max(now, d.CreatedAt, d.UpdatedAt).Std())
	anyMessage := d.MessageID == ""
	if !anyMessage && !o.namedBy(d) {
		wait += lostMessageTimeout
	}
	switch {
	case wait <= clockSkew:
		return 0, true
	case anyMessage && d.DueAt != nil && wait > maxSendAhead:
		return 0, false
	}
	return wait, true
}

// namedBy reports whether the delivery names the message for its next
// attempt, or the one that it replaces.
func (o origin) namedBy(d *webhook.Delivery) bool {
	if d.MessageID == "" {
		return false
	}
	id, _, _ := strings.Cut(d.MessageID, "/")
	return id == o.messageID || d.MessageID == o.replaces
}

// nameAfter is the delivery's name for the message after its attempt of the
// number, from 1. The number is part of it so that, of a message and its
// replacement, should both be there, one is left after the next attempt,
// whichever makes it.
func (o origin) nameAfter(number int) string { return o.messageID + "/" + strconv.Itoa(number) }
