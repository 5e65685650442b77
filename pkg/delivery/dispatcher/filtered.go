package dispatcher

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// filteredInterval is how often each instance writes the filtered events at most.
const filteredInterval = time.Minute

// filtered counts the events that endpoints did not get by their delivery
// settings. It adds them up in memory and writes them at most once in an
// interval, so that a filtered event costs nothing of its own. An instance that
// ends takes with it what it counted since it last wrote. A batch counts when all
// of it is dispatched.
type filtered struct {
	mu      sync.Mutex
	pending map[filteredHour]int64
	written value.Time // when it last wrote
}

// filteredHour is an hour of UTC of an endpoint.
type filteredHour struct {
	organization, endpoint value.ID
	start                  value.Time
}

// count adds the endpoints that filtered an event of the changes.
func (f *filtered) count(changes []*change, now value.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		for i := range c.events {
			for _, e := range c.events[i].filtered {
				if c.err == nil {
					f.pending[filteredHour{e.OrganizationID, e.ID, webhook.StatsHour.Start(now)}]++
				}
			}
		}
	}
}

// due takes the counts to write now.
func (f *filtered) due(now value.Time) map[filteredHour]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 || now < f.written.Add(filteredInterval) {
		return nil
	}
	due := f.pending
	f.pending, f.written = map[filteredHour]int64{}, now
	return due
}

// putBack keeps unwritten counts for the next time.
func (f *filtered) putBack(hour filteredHour, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[hour] += n
}

// writeFiltered counts the filtered events of the changes, and writes the due
// counts. Counts that cannot be written are written later.
func (d *Dispatcher) writeFiltered(ctx context.Context, changes []*change) {
	now := value.TimeOf(d.clock())
	d.filtered.count(changes, now)
	if deadline.Left(ctx) < roundTime {
		return
	}
	parallel.Each(maxReads, maps.All(d.filtered.due(now)), func(hour filteredHour, n int64) {
		if err := d.store.AddFiltered(ctx, hour.organization, hour.endpoint, hour.start, n); err != nil {
			d.filtered.putBack(hour, n)
			d.logger.WarnContext(ctx, "filtered events are counted later", "endpointId", hour.endpoint, "events", n, "error", err)
		}
	})
}
