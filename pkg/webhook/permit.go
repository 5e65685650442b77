package webhook

import (
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// AttemptsPerPermit is how many attempts of an endpoint an instance of the worker
	// that holds one of its permits may have under way in the main lane, as many as
	// the messages of a batch.
	AttemptsPerPermit = 10
	// FirstPermits is how many permits an endpoint has at first, and at least.
	FirstPermits = 5

	quickAttempt    = time.Second
	slowFromQuick   = 20 // of so many attempts one may take longer
	minPaceAttempts = AttemptsPerPermit
)

// PermitRequest asks for one of an endpoint's permits for a holder until a time.
// Pace is that of the holder's attempts since it last asked.
type PermitRequest struct {
	OrganizationID, EndpointID value.ID
	Holder                     string
	Most                       int // permits of the endpoint
	Pace                       Pace
	Now, Until                 value.Time
}

// Pace is how quick attempts were.
type Pace struct{ Attempts, Slow int }

// Add adds an attempt that took so long.
func (p *Pace) Add(took time.Duration) {
	p.Attempts++
	if took > quickAttempt {
		p.Slow++
	}
}

// Permits returns how many permits an endpoint that has had so many has from now
// on, by the attempts of one holder: twice as many while they are quick, at the 95th
// percentile within a second, half as many when they are not, and as many when they
// are too few to say.
func (p Pace) Permits(had, most int) int {
	had = max(had, FirstPermits)
	switch {
	case p.Attempts < minPaceAttempts:
	case p.Slow*slowFromQuick > p.Attempts:
		had /= 2
	default:
		had *= 2
	}
	return max(FirstPermits, min(had, most))
}
