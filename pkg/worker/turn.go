package worker

import (
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// turn tells what a message may do for its row.
type turn uint8

const (
	attempt turn = iota // it is time, and the message may
	wake                // it is not: come again
	drop                // a due mark brings the attempt
)

const (
	// tolerance is how much too early an attempt may be: the clocks of
	// instances differ a little, and a wait costs a second at least.
	tolerance = time.Second
	// nearby is how far ahead an attempt may lie for a message that is not
	// bound to wait for it: the sweeper sends up to a minute before the time.
	nearby = 90 * time.Second
	// takeOver is how late an attempt must be for another message than its
	// carrier to make it, which then seems to be lost. Until then the other
	// stays: it may be all that is left.
	takeOver = 2 * time.Minute
)

// turnOf decides by the row's next attempt and by who carries it, and says
// how long the message has to wait.
func turnOf(r *webhook.Delivery, t *task, now value.Time) (turn, time.Duration) {
	early := r.NextAttemptAt.Std().Sub(now.Std())
	free := r.MessageID == ""
	if !free && !t.carries(r) {
		early += takeOver
	}
	switch {
	case early <= tolerance:
		return attempt, 0
	case free && r.DueAt != nil && early > nearby:
		return drop, 0
	}
	return wake, early
}

// carries reports whether the row's next attempt is bound to the message, or
// to the one that it was sent in place of.
func (t *task) carries(r *webhook.Delivery) bool {
	if r.MessageID == "" {
		return false
	}
	message, _, _ := strings.Cut(r.MessageID, "/")
	return message == t.message.MessageId || r.MessageID == t.ref.As
}

// carrier is what the row knows the message by after its attempt of the
// number, from 1. The number is part of it so that of a message and another
// in its place, should both be there, one is left after the next attempt,
// whichever makes it.
func (t *task) carrier(number int) string {
	return t.message.MessageId + "/" + strconv.Itoa(number)
}
