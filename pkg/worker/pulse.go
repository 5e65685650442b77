package worker

import (
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// lookAgain is how long what was read of an endpoint's health serves, as long
// as what this process adds to it decides nothing.
const lookAgain = time.Second

// pulses is what this process knows of the health of endpoints that were in
// trouble.
type pulses struct {
	mu         sync.Mutex
	byEndpoint bounded[value.ID, *pulse]
}

// pulse is an endpoint's health as it was read, and this process's attempts
// since.
type pulse struct {
	health   webhook.Health
	lookedAt value.Time // 0: never
}

func newPulses() *pulses {
	return &pulses{byEndpoint: newBounded[value.ID, *pulse](remembered, nil)}
}

// known is the endpoint's health as far as it is known.
func (p *pulses) known(e *webhook.Endpoint) webhook.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := e.HealthStart()
	one, found := p.byEndpoint.get(e.ID)
	switch {
	case !found:
		return webhook.Health{Since: since}
	case one.health.Since != since:
		return webhook.Health{Since: since, LastSuccessAt: one.health.LastSuccessAt}
	}
	return one.health
}

// beat adds attempts that were recorded and tells whether they make a look at
// the endpoint's health necessary. Who is told so is expected to look.
func (p *pulses) beat(v *verdict, now value.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, found := p.byEndpoint.get(v.endpoint.ID)
	if !found {
		if !v.trouble {
			return false
		}
		one = &pulse{}
		p.byEndpoint.put(v.endpoint.ID, one)
	}
	if since := v.endpoint.HealthStart(); one.health.Since != since {
		*one = pulse{health: webhook.Health{Since: since, LastSuccessAt: one.health.LastSuccessAt}}
	}
	for i := range v.attempts {
		one.add(&v.attempts[i], now)
	}
	old := one.lookedAt == 0 || now >= one.lookedAt.Add(lookAgain)
	if !v.trouble || !old && !v.endpoint.Circuit.Open() && !v.decides(one.health, now) {
		return false
	}
	one.lookedAt = now
	return true
}

func (p *pulse) add(a *webhook.Attempt, now value.Time) {
	h, at := &p.health, a.At.Add(a.Duration())
	h.Recent.Attempts++
	if a.Duration() > webhook.SlowAttempt {
		h.Recent.Slow++
	}
	if a.Error == nil {
		h.LastSuccessAt, h.Run = max(now, h.LastSuccessAt), webhook.FailureRun{}
		return
	}
	h.Recent.Failed++
	if h.Run.Count == 0 {
		h.Run.Start = at
	}
	h.Run.Count++
	h.Run.Last = max(h.Run.Last, at)
}

// saw notes what was read.
func (p *pulses) saw(endpoint value.ID, h webhook.Health, now value.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byEndpoint.put(endpoint, &pulse{health: h, lookedAt: now})
}
