package webhook

import (
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// RowStatus is a row's status.
type DeliveryStatus string

// The statuses of a row.
const (
	DeliveryPending   DeliveryStatus = "PENDING"
	DeliveryDelivered DeliveryStatus = "DELIVERED"
	DeliveryFailed    DeliveryStatus = "FAILED"
	DeliveryHeld      DeliveryStatus = "HELD"
	DeliveryCancelled DeliveryStatus = "CANCELLED"
)

// Values lists every status of a row.
func (DeliveryStatus) Values() []string {
	return []string{string(DeliveryPending), string(DeliveryDelivered), string(DeliveryFailed), string(DeliveryHeld), string(DeliveryCancelled)}
}

// HeldReason tells why a row is HELD; "" when it is not.
type HeldReason string

// The reasons to hold a row.
const (
	HeldPaused      HeldReason = "PAUSED"
	HeldDisabled    HeldReason = "DISABLED"
	HeldCircuitOpen HeldReason = "CIRCUIT_OPEN"
	HeldSuspended   HeldReason = "SUSPENDED"
)

// Decided reports whether the endpoint's owner or the operator has the row
// wait until it is recovered.
func (h HeldReason) Decided() bool { return h != "" && h != HeldCircuitOpen }

// Values lists every reason to hold a row.
func (HeldReason) Values() []string {
	return []string{string(HeldPaused), string(HeldDisabled), string(HeldCircuitOpen), string(HeldSuspended)}
}

const (
	// Retention is how long a row is shown: at least 30 and less than 31 days.
	Retention = 30*24*time.Hour + 12*time.Hour
	// PayloadRetention outlives the rows of the payload.
	PayloadRetention = 31 * 24 * time.Hour
	// Lease is how far ahead the due mark of a row stands whose message is
	// being sent: should the message be lost, the sweeper sends another.
	Lease = 10 * time.Minute
)

// Row is one event for one endpoint.
type Delivery struct {
	ID             value.ID       `json:"id,omitzero"` // left out at rest, where the key has it
	EventID        value.ID       `json:"eventId"`
	EndpointID     value.ID       `json:"endpointId"`
	ApplicationID  value.ID       `json:"applicationId"`
	OrganizationID value.ID       `json:"organizationId,omitzero"` // likewise
	SiteID         *value.ID      `json:"siteId"`
	Type           string         `json:"type"`
	Status         DeliveryStatus `json:"status"`
	HeldReason     HeldReason     `json:"heldReason,omitzero"`
	AttemptCount   int            `json:"attemptCount"`
	NextAttemptAt  *value.Time    `json:"nextAttemptAt,omitzero"` // while PENDING
	LastAttemptAt  *value.Time    `json:"lastAttemptAt,omitzero"`
	DeliveredAt    *value.Time    `json:"deliveredAt,omitzero"`
	Attempts       []Attempt      `json:"attempts,omitempty"`
	CreatedAt      value.Time     `json:"createdAt"`
	UpdatedAt      value.Time     `json:"updatedAt"` // rises with every change of the row

	// ScheduleStart is the attemptCount at which the present schedule began.
	ScheduleStart int `json:"scheduleStart,omitzero"`
	// Carrier is the queue message that brings the next attempt; "" when any
	// message may.
	MessageID string `json:"carrier,omitzero"`
	// DueAt is when the sweeper looks at a PENDING row; nil when a message
	// carries it.
	DueAt *value.Time `json:"dueAt,omitzero"`
	// Test rows get one attempt whatever the endpoint's status, which
	// changes neither the endpoint nor its counters.
	Test bool `json:"test,omitzero"`
	// Probe tells that the attempt ahead is its endpoint's probe, made
	// although the circuit is open.
	Probe bool `json:"probe,omitzero"`
}

// RowID is the identifier of an event's row for an endpoint. It is derived,
// so that a replay finds the row instead of making another.
func DeliveryID(event, endpoint value.ID) value.ID { return value.DeriveID(event, endpoint.String()) }

// NewRow returns the row of an event for an endpoint, to be attempted at
// once or HELD for the reason.
func NewDelivery(ev *commerce.WebhookPayload, e *Endpoint, hold HeldReason, now value.Time) *Delivery {
	r := &Delivery{
		ID: DeliveryID(ev.ID, e.ID), EventID: ev.ID, EndpointID: e.ID,
		ApplicationID: e.ApplicationID, OrganizationID: e.OrganizationID, SiteID: ev.SiteID,
		Type: ev.Type, Status: DeliveryPending, NextAttemptAt: &now, CreatedAt: now, UpdatedAt: now,
	}
	if hold != "" {
		r.Status, r.HeldReason, r.NextAttemptAt = DeliveryHeld, hold, nil
	}
	return r
}

// NewTest returns the row of a test, to be attempted at once whatever the
// endpoint's status. A due mark stands for its message until that is sent and
// handled.
func NewTestDelivery(ev *commerce.WebhookPayload, e *Endpoint, now value.Time) *Delivery {
	r := NewDelivery(ev, e, "", now)
	due := now.Add(Lease)
	r.Test, r.DueAt = true, &due
	return r
}

// ExpiresAt is the time from which the row is no longer shown.
func (r *Delivery) ExpiresAt() value.Time { return r.CreatedAt.Add(Retention) }

// Pending reports whether an attempt lies ahead.
func (r *Delivery) Pending() bool { return r.Status == DeliveryPending }

// Unattempted reports whether the row waits for its very first message,
// which nothing else stands for.
func (r *Delivery) Unattempted() bool {
	return r.Status == DeliveryPending && r.AttemptCount == 0 && r.DueAt == nil
}

// Unsent reports whether a recovery may send the row again.
func (r *Delivery) Unsent() bool {
	return !r.Test && (r.Status == DeliveryHeld || r.Status == DeliveryFailed)
}

// recheckSpan is how long after a hold its queue message, or its stream
// record, may come again when the process that held the delivery died.
const recheckSpan = 15 * time.Minute

// MayMissRecovery reports whether a recovery may have missed the delivery: it
// became HELD a short time ago by a decision of the endpoint's owner or the
// operator. A recovery may lie between the read of that decision and the
// hold, and has then not met the delivery. So whoever holds a delivery reads
// the endpoint again afterwards and calls [Delivery.RecheckHold]. What the
// circuit holds, the circuit finds itself.
func (r *Delivery) MayMissRecovery(now value.Time) bool {
	return r.HeldReason.Decided() && now.Std().Sub(r.UpdatedAt.Std()) < recheckSpan
}

// RecheckHold returns the delivery resumed when a recovery may have missed it
// and the endpoint, read after the hold, no longer holds it by a decision;
// nil when it stays as it is. A nil endpoint is one that was deleted.
func (r *Delivery) RecheckHold(e *Endpoint, application ApplicationState, now value.Time) *Delivery {
	if !r.MayMissRecovery(now) || e == nil || e.Hold(application).Decided() {
		return nil
	}
	return r.Resume(now)
}

// change returns a copy to be changed at now, with nothing ahead of it.
func (r *Delivery) change(now value.Time) *Delivery {
	next := *r
	next.UpdatedAt = max(now, r.UpdatedAt+1)
	next.HeldReason, next.NextAttemptAt, next.MessageID, next.DueAt, next.Probe = "", nil, "", nil, false
	return &next
}

// Hold returns the row HELD for the reason.
func (r *Delivery) Hold(reason HeldReason, now value.Time) *Delivery {
	next := r.change(now)
	next.Status, next.HeldReason = DeliveryHeld, reason
	return next
}

// Cancel returns the row CANCELLED.
func (r *Delivery) Cancel(now value.Time) *Delivery {
	next := r.change(now)
	next.Status = DeliveryCancelled
	return next
}

// Requeue returns the row PENDING with a new full schedule, under a due mark
// that stands for its message until that is sent and handled.
func (r *Delivery) Requeue(now value.Time) *Delivery {
	next := r.resume(now, now)
	next.ScheduleStart, next.DeliveredAt = r.AttemptCount, nil
	return next
}

// Resume returns a HELD row PENDING at once, under a due mark as
// [Row.Requeue] sets it; its schedule goes on where it was.
func (r *Delivery) Resume(now value.Time) *Delivery { return r.resume(now, now) }

// AsProbe returns a HELD row PENDING at the time as its endpoint's probe,
// under a due mark as [Row.Requeue] sets it; its schedule goes on where it
// was.
func (r *Delivery) ResumeAsProbe(at, now value.Time) *Delivery {
	next := r.resume(at, now)
	next.Probe = true
	return next
}

// resume plans the next attempt at the time. The due mark stands for its
// message until that is sent and handled.
func (r *Delivery) resume(at, now value.Time) *Delivery {
	next := r.change(now)
	due := at.Add(Lease)
	next.Status, next.NextAttemptAt, next.DueAt = DeliveryPending, &at, &due
	return next
}

// Record returns the row after an attempt that the message brought. retries
// is the endpoint's retry count and random, in [0,1), moves the next
// attempt within its span.
func (r *Delivery) Record(o Outcome, message string, retries int, random float64, now value.Time) *Delivery {
	next := r.change(now)
	next.AttemptCount++
	next.Attempts = append(append([]Attempt{}, r.Attempts...), o.Attempt)
	next.Attempts = next.Attempts[max(0, len(next.Attempts)-MaxAttempts):]
	next.LastAttemptAt = &o.Attempt.At
	retry := next.AttemptCount - r.ScheduleStart
	switch {
	case o.Result == AttemptSucceeded:
		next.Status, next.DeliveredAt = DeliveryDelivered, &now
	case o.Result == AttemptRefused || r.Test || retry > retries:
		next.Status = DeliveryFailed
	default:
		next.await(o, message, RetryDelay(retry, random), now)
	}
	return next
}

// await plans the next attempt: by the message itself when its wait is
// short, else by a due mark.
func (r *Delivery) await(o Outcome, message string, delay time.Duration, now value.Time) {
	delay = max(delay, min(o.RetryAfter, MaxRetryAfter))
	at := now.Add(delay)
	r.Status, r.NextAttemptAt = DeliveryPending, &at
	if delay <= LongestCarry {
		r.MessageID = message
	} else {
		r.DueAt = &at
	}
}
