package delivery

import (
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// turn tells what a message may do for its row.
type turn uint8

const (
	attempt turn = iota // it is time, and the message may
	wake                // it is too early: come again
	drop                // another message or a due mark brings the attempt
)

const (
	// tolerance is how much too early an attempt may be: the clocks of
	// instances differ a little, and a wait costs a second at least.
	tolerance = time.Second
	// nearby is how far ahead an attempt may lie for a message that is not
	// bound to wait for it: the sweeper sends up to a minute before the time.
	nearby = 90 * time.Second
	// takeOver is how late an attempt must be for another message than its
	// carrier to make it, which then seems to be lost.
	takeOver = 2 * time.Minute
)

// turnOf decides by the row's next attempt and by who carries it.
func turnOf(r *webhook.Row, message string, now value.Time) (turn, time.Duration) {
	early := r.NextAttemptAt.Std().Sub(now.Std())
	switch {
	case r.Carrier != "" && r.Carrier != message:
		if early < -takeOver {
			return attempt, 0
		}
		return drop, 0
	case early <= tolerance:
		return attempt, 0
	case r.Carrier == message || early <= nearby:
		return wake, early
	}
	return drop, 0
}
