package webhook

import (
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// DeliveryStatus is a delivery's status. The package doc shows its changes.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "PENDING"
	DeliveryDelivered DeliveryStatus = "DELIVERED"
	DeliveryFailed    DeliveryStatus = "FAILED"
	DeliveryHeld      DeliveryStatus = "HELD"
	DeliveryCancelled DeliveryStatus = "CANCELLED"
)

// Values lists every status of a delivery.
func (DeliveryStatus) Values() []string {
	return []string{string(DeliveryPending), string(DeliveryDelivered), string(DeliveryFailed), string(DeliveryHeld), string(DeliveryCancelled)}
}

// HeldReason says why a delivery is HELD; "" when it is not.
type HeldReason string

// The reasons to hold a delivery.
const (
	HeldPaused      HeldReason = "PAUSED"
	HeldDisabled    HeldReason = "DISABLED"
	HeldCircuitOpen HeldReason = "CIRCUIT_OPEN"
	HeldSuspended   HeldReason = "SUSPENDED"
)

// Decided reports whether the endpoint's owner or the operator decided that
// the delivery waits for a recovery.
func (h HeldReason) Decided() bool { return h != "" && h != HeldCircuitOpen }

// Values lists every reason to hold a delivery.
func (HeldReason) Values() []string {
	return []string{string(HeldPaused), string(HeldDisabled), string(HeldCircuitOpen), string(HeldSuspended)}
}

const (
	// Retention is how long a delivery is shown: at least 30 and less than 31
	// days.
	Retention = 30*24*time.Hour + 12*time.Hour
	// PayloadRetention outlives the deliveries of the payload.
	PayloadRetention = 31 * 24 * time.Hour
	// Lease is how far behind the attempt the due mark of a delivery lies while
	// its message is being sent: should the sender die, the sweeper, which looks
	// a minute ahead, sends another one to two minutes after the attempt was due.
	// An attempt in time is over by then.
	Lease = 2 * time.Minute
	// ResendAfter is how late an attempt is, at least, when the sweeper sends
	// another message for it.
	ResendAfter = time.Minute
)

// Delivery is one event for one endpoint.
type Delivery struct {
	ID             value.ID       `json:"id,omitzero"` // left out at rest, where the key has it
	EventID        value.ID       `json:"eventId"`
	EndpointID     value.ID       `json:"endpointId"`
	ApplicationID  value.ID       `json:"applicationId"`
	OrganizationID value.ID       `json:"organizationId,omitzero"` // likewise
	SiteID         *value.ID      `json:"siteId"`
	ObjectID       value.ID       `json:"objectId,omitzero"` // of the event's object; zero where it has none, or was not kept yet
	Type           string         `json:"type"`
	Status         DeliveryStatus `json:"status"`
	HeldReason     HeldReason     `json:"heldReason,omitzero"`
	AttemptCount   int            `json:"attemptCount"`
	NextAttemptAt  *value.Time    `json:"nextAttemptAt,omitzero"` // while PENDING
	Attempts       []Attempt      `json:"attempts,omitempty"`
	CreatedAt      value.Time     `json:"createdAt"`
	UpdatedAt      value.Time     `json:"updatedAt"` // rises with every change; 0 while only a message has it

	// ScheduleStart is the attemptCount at which the present schedule began,
	// and the failed probes since.
	ScheduleStart int `json:"scheduleStart,omitzero"`
	// MessageID is the name of the queue message that makes the next attempt;
	// "" when any message may.
	MessageID string `json:"carrier,omitzero"`
	// DueAt is when the sweeper looks at a PENDING delivery; nil when a
	// message takes care of it.
	DueAt *value.Time `json:"dueAt,omitzero"`
	// Fields are those of the event's object that are sent, with its id, as
	// the endpoint's settings were when the delivery was made; nil: all.
	Fields []string `json:"fields,omitempty"`
	// A test gets one attempt whatever the endpoint's status, which
	// changes neither the endpoint nor its counters.
	Test bool `json:"test,omitzero"`
	// Probe says that the attempt ahead is its endpoint's probe, made
	// although the circuit is open.
	Probe bool `json:"probe,omitzero"`
	// Unsettled says that the endpoint's routing was [Endpoint.Unsettled] at the
	// last attempt.
	Unsettled bool `json:"unsettled,omitzero"`
}

// DeliveryID is the identifier of an event's delivery to an endpoint. It is
// derived, so that a replay finds the delivery instead of making another.
func DeliveryID(event, endpoint value.ID) value.ID { return value.DeriveID(event, endpoint.String()) }

// NewDelivery returns the delivery of an event to an endpoint, to be
// attempted at once or HELD for the reason.
func NewDelivery(ev *commerce.WebhookPayload, e *Endpoint, hold HeldReason, now value.Time) *Delivery {
	d := &Delivery{
		ID: DeliveryID(ev.ID, e.ID), EventID: ev.ID, EndpointID: e.ID,
		ApplicationID: e.ApplicationID, OrganizationID: e.OrganizationID, SiteID: ev.SiteID, ObjectID: ev.ObjectID,
		Type: ev.Type, Status: DeliveryPending, NextAttemptAt: &now, CreatedAt: now, UpdatedAt: now,
		Fields: e.Delivery.sent(ev.Type),
	}
	if hold != "" {
		d.Status, d.HeldReason, d.NextAttemptAt = DeliveryHeld, hold, nil
	}
	return d
}

// Body is the part of the event's payload that is sent: the same bytes with every
// attempt, whatever the endpoint's settings are by then.
func (d *Delivery) Body(payload []byte) ([]byte, error) {
	if d.Fields == nil {
		return payload, nil
	}
	return commerce.SelectFields(payload, d.Fields)
}

// NewTestDelivery returns the delivery of a test, to be attempted at once
// whatever the endpoint's status. It has a due mark in case its message is
// lost.
func NewTestDelivery(ev *commerce.WebhookPayload, e *Endpoint, now value.Time) *Delivery {
	d := NewDelivery(ev, e, "", now)
	due := now.Add(Lease)
	d.Test, d.DueAt = true, &due
	return d
}

// ExpiresAt is the time from which the delivery is no longer shown.
func (d *Delivery) ExpiresAt() value.Time { return d.CreatedAt.Add(Retention) }

// Pending reports whether an attempt lies ahead.
func (d *Delivery) Pending() bool { return d.Status == DeliveryPending }

// Unattempted reports whether the delivery waits for its very first message,
// and has no due mark in case that is lost.
func (d *Delivery) Unattempted() bool {
	return d.Status == DeliveryPending && d.AttemptCount == 0 && d.DueAt == nil
}

// Stored reports whether the delivery is stored: one whose message carries it is
// stored with its first outcome, or when its message has to wait.
func (d *Delivery) Stored() bool { return d.UpdatedAt != 0 }

// StoredAt returns the delivery as it is once it is stored at a time; at 0 it is not.
func (d *Delivery) StoredAt(at value.Time) *Delivery {
	next := *d
	next.UpdatedAt = at
	return &next
}

// Unsent reports whether a recovery may send the delivery again.
func (d *Delivery) Unsent() bool {
	return !d.Test && (d.Status == DeliveryHeld || d.Status == DeliveryFailed)
}

// recheckSpan is how long after a hold its queue message, or its stream
// record, may come again when the process that held the delivery died.
const recheckSpan = 15 * time.Minute

// MayMissRecovery reports whether a recovery may have missed the delivery: it
// became HELD a short time ago by a decision of the endpoint's owner or the
// operator. A recovery may lie between the read of that decision and the
// hold, and has then not met the delivery. So a caller that holds a delivery reads
// the endpoint again afterwards and calls [Delivery.RecheckHold]. What the
// circuit holds, the circuit finds itself.
func (d *Delivery) MayMissRecovery(now value.Time) bool {
	return d.HeldReason.Decided() && now.Std().Sub(d.UpdatedAt.Std()) < recheckSpan
}

// RecheckHold returns the delivery resumed when a recovery may have missed it
// and the endpoint, read after the hold, no longer holds it by a decision;
// nil when it stays as it is. A nil endpoint is one that was deleted.
func (d *Delivery) RecheckHold(e *Endpoint, application ApplicationState, now value.Time) *Delivery {
	if hold, gone := MaySend(e, application); !d.MayMissRecovery(now) || gone || hold.Decided() {
		return nil
	}
	return d.Resume(now)
}

// change returns a copy to be changed at now, with nothing ahead of it.
func (d *Delivery) change(now value.Time) *Delivery {
	next := *d
	next.UpdatedAt = max(now, d.UpdatedAt+1)
	next.HeldReason, next.NextAttemptAt, next.MessageID, next.DueAt = "", nil, "", nil
	next.Probe, next.Unsettled = false, false
	return &next
}

// Hold returns the delivery HELD for the reason.
func (d *Delivery) Hold(reason HeldReason, now value.Time) *Delivery {
	next := d.change(now)
	next.Status, next.HeldReason = DeliveryHeld, reason
	return next
}

// Cancel returns the delivery CANCELLED.
func (d *Delivery) Cancel(now value.Time) *Delivery {
	next := d.change(now)
	next.Status = DeliveryCancelled
	return next
}

// Requeue returns the delivery PENDING with a new full schedule, under a due
// mark in case its message is lost.
func (d *Delivery) Requeue(now value.Time) *Delivery {
	next := d.resume(now, now)
	next.ScheduleStart = d.AttemptCount
	return next
}

// RequeueAsProbe is [Delivery.Requeue] as the endpoint's probe.
func (d *Delivery) RequeueAsProbe(now value.Time) *Delivery {
	next := d.Requeue(now)
	next.Probe = true
	return next
}

// Resume returns a HELD delivery PENDING at once, under a due mark as
// [Delivery.Requeue] sets it; its schedule goes on where it was.
func (d *Delivery) Resume(now value.Time) *Delivery { return d.resume(now, now) }

// ResumeAsProbe is [Delivery.Resume] at the time, as the endpoint's probe.
func (d *Delivery) ResumeAsProbe(at, now value.Time) *Delivery {
	next := d.resume(at, now)
	next.Probe = true
	return next
}

// ProbeNext returns a delivery whose attempt failed as the endpoint's next probe,
// by a message that is sent under the name: the message of the attempt waits
// longer. Its due mark is for the case that the message is lost.
func (d *Delivery) ProbeNext(at, now value.Time) *Delivery {
	next := d.ResumeAsProbe(at, now)
	next.MessageID = "probe/" + strconv.Itoa(d.AttemptCount)
	return next
}

func (d *Delivery) resume(at, now value.Time) *Delivery {
	next := d.change(now)
	due := at.Add(Lease)
	next.Status, next.NextAttemptAt, next.DueAt = DeliveryPending, &at, &due
	return next
}

// Postpone returns a PENDING delivery whose attempt waits until the time, at which
// the sweeper sends its message.
func (d *Delivery) Postpone(at, now value.Time) *Delivery {
	next := d.change(now)
	next.NextAttemptAt, next.DueAt, next.Probe = &at, &at, d.Probe
	return next
}

// Claim returns a delivery under a due mark whose late attempt the message
// makes: others wait for it. The due mark lies the lease ahead.
func (d *Delivery) Claim(message string, now value.Time) *Delivery {
	next := d.resume(now, now)
	next.Probe, next.MessageID = d.Probe, message
	return next
}

// Record returns the delivery after an attempt that the message made.
// retries is the endpoint's retry count, and random, in [0,1), moves the next
// attempt within its span. A failed probe uses up no retry: however long the
// endpoint is down, its probes end no delivery.
func (d *Delivery) Record(o Outcome, message string, retries int, random float64, now value.Time) *Delivery {
	next := d.change(now)
	next.AttemptCount++
	next.Attempts = appendAttempt(d.Attempts, o.Attempt)
	if d.Probe {
		next.ScheduleStart++
	}
	retry := next.AttemptCount - next.ScheduleStart
	switch {
	case o.Result == AttemptSucceeded:
		next.Status = DeliveryDelivered
	case o.Result == AttemptRefused || d.Test || retry > retries:
		next.Status = DeliveryFailed
	default:
		next.retryIn(o, message, RetryDelay(retry, random), now)
	}
	return next
}

// retryIn plans the next attempt: by the message itself when its wait is
// short, else by a due mark.
func (d *Delivery) retryIn(o Outcome, message string, delay time.Duration, now value.Time) {
	delay = max(delay, min(o.RetryAfter, MaxRetryAfter))
	at := now.Add(delay)
	d.Status, d.NextAttemptAt = DeliveryPending, &at
	if delay <= MaxMessageWait {
		d.MessageID = message
	} else {
		d.DueAt = &at
	}
}
