package worker

import (
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// healthFreshness is how long an endpoint's health is relied on after it was
// read, as long as what this process adds to it decides nothing.
const healthFreshness = time.Second

// observation is the result of recorded attempts for their endpoint.
type observation struct {
	endpoint    *webhook.Endpoint // as it was read before the attempts
	messages    []*message
	attempts    []webhook.Attempt
	succeeded   bool // at least one attempt
	probeFailed bool
	trouble     bool // an attempt was slow or failed, or the endpoint is not in its normal state
}

// observe groups the attempts that were counted by their endpoints.
func observe(messages []*message) []*observation {
	var found []*observation
	byEndpoint := map[value.ID]*observation{}
	for _, m := range messages {
		if !m.attempt.counted || m.input.Delivery.Test {
			continue
		}
		e, a := m.input.Endpoint, m.attempt.outcome.Attempt
		o := byEndpoint[e.ID]
		if o == nil {
			o = &observation{endpoint: e, trouble: e.Unsettled()}
			byEndpoint[e.ID] = o
			found = append(found, o)
		}
		failed := a.Error != nil
		o.messages, o.attempts = append(o.messages, m), append(o.attempts, a)
		o.succeeded = o.succeeded || !failed
		o.probeFailed = o.probeFailed || failed && m.input.Delivery.Probe
		o.trouble = o.trouble || failed || a.Duration() > webhook.SlowAttempt
	}
	return found
}

// callsForChange reports whether the endpoint must change by its health.
func (o *observation) callsForChange(h webhook.Health, now value.Time) bool {
	next, disable := o.endpoint.NextRouting(h, o.succeeded, o.probeFailed, now)
	return disable != "" || !next.Equal(o.endpoint.Routing())
}

// healthCache is what this process knows about the health of endpoints that
// were in trouble.
type healthCache struct {
	mu         sync.Mutex
	byEndpoint bounded[value.ID, *cachedHealth]
}

// cachedHealth is an endpoint's health as it was read, and this process's
// attempts since.
type cachedHealth struct {
	health  webhook.Health
	readAt  value.Time // 0: never
	trouble value.Time // when this process last saw some
}

func newHealthCache() *healthCache {
	return &healthCache{byEndpoint: newBounded[value.ID, *cachedHealth](rememberedEndpoints, nil)}
}

// known is the endpoint's health as far as this process knows it.
func (c *healthCache) known(e *webhook.Endpoint) webhook.Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached, found := c.byEndpoint.get(e.ID); found {
		return cached.since(e.HealthStart())
	}
	return webhook.Health{Since: e.HealthStart()}
}

// since is the health if attempts count from the time, and otherwise as much
// of it as is still true.
func (c *cachedHealth) since(start value.Time) webhook.Health {
	if c.health.Since != start {
		return webhook.Health{Since: start, LastSuccessAt: c.health.LastSuccessAt}
	}
	return c.health
}

// add adds attempts that were recorded and reports whether the endpoint's
// health must be read. The caller then reads it.
func (c *healthCache) add(o *observation, now value.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, found := c.byEndpoint.get(o.endpoint.ID)
	if !found {
		if !o.trouble {
			return false
		}
		cached = &cachedHealth{}
		c.byEndpoint.put(o.endpoint.ID, cached)
	}
	if start := o.endpoint.HealthStart(); cached.health.Since != start {
		*cached = cachedHealth{health: cached.since(start), trouble: cached.trouble}
	}
	for i := range o.attempts {
		cached.health.Add(&o.attempts[i], now)
	}
	if o.trouble {
		cached.trouble = now
	}
	stale := cached.readAt == 0 || now >= cached.readAt.Add(healthFreshness)
	if !o.trouble || !stale && !o.endpoint.Circuit.Open() && !o.callsForChange(cached.health, now) {
		return false
	}
	cached.readAt = now
	return true
}

// put keeps a reading.
func (c *healthCache) put(endpoint value.ID, h webhook.Health, now value.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &cachedHealth{health: h, readAt: now}
	if cached, found := c.byEndpoint.get(endpoint); found {
		next.trouble = cached.trouble
	}
	c.byEndpoint.put(endpoint, next)
}

// troubled reports whether this process has seen trouble of the endpoint within
// the time that [webhook.Health.Recent] looks back on.
func (c *healthCache) troubled(endpoint value.ID, now value.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, found := c.byEndpoint.get(endpoint)
	return found && now < cached.trouble.Add(webhook.RecentSpan)
}
