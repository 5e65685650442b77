package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// warmupEvents go through a service before a measurement, so that connections are open and code has run.
const warmupEvents = 300

// load is so many organizations of the service that have had their first events.
func (b *bench) load(ctx context.Context, s *service, organizations int) (*workload.Load, error) {
	tenants, err := s.NewTenants(ctx, organizations, b.receiver)
	if err != nil {
		return nil, err
	}
	l := &workload.Load{Tenants: tenants, Receiver: b.receiver}
	if _, err := l.Burst(ctx, min(max(warmupEvents, organizations), b.Events)); err != nil {
		return nil, err
	}
	return l, s.Quiet(ctx)
}

// outcome is what events came to.
type outcome struct {
	events    int
	perSecond float64
	latencies workload.Latencies // of those that came one at a time
}

func (b *bench) burst(ctx context.Context, l *workload.Load) (*outcome, error) {
	took, err := l.Burst(ctx, b.Events)
	return &outcome{events: b.Events, perSecond: float64(b.Events) / took.Seconds()}, err
}

func (b *bench) pace(ctx context.Context, l *workload.Load, rate, events int) (*outcome, error) {
	latencies, err := l.Pace(ctx, time.Second/time.Duration(rate), func(n int) bool { return n < events })
	return &outcome{len(latencies), float64(rate), latencies}, err
}

// atRate paces at the configured rate.
func (b *bench) atRate(ctx context.Context, l *workload.Load) (*outcome, error) {
	return b.pace(ctx, l, b.Rate, max(1, int(float64(b.Rate)*b.Paced.Seconds())))
}

// deliveries is the section of events one at a time, then in bursts, then one at a time again.
func (b *bench) deliveries(ctx context.Context) error {
	t := newTable("Deliveries", "events", "a second", "p50", "p99", "service", "table", "client", "lists after", "twice")
	for _, organizations := range []int{1, b.Organizations} {
		err := b.withService(ctx, nil, func(s *service) error {
			l, err := b.load(ctx, s, organizations)
			if err != nil {
				return err
			}
			if err := b.deliver(ctx, s, l, "one at a time", b.atRate, t); err != nil {
				return err
			}
			for range b.Rounds {
				if err := b.deliver(ctx, s, l, "burst", b.burst, t); err != nil {
					return err
				}
			}
			return b.deliver(ctx, s, l, "one at a time, after the bursts", b.atRate, t)
		})
		if err != nil {
			return err
		}
	}
	t.note = "From a record's message to its event's receipt; at a rate, from when the record was due. A payload has about 1 KB, " +
		"each record is in a message of its own, and each organization has an endpoint. Then the CPU of one event: of the service, one process with " +
		"queue server, gateway and event sources; of the table server; of sender and receiver. Lists: until they show every record."
	t.print(b.Out)
	return nil
}

// deliver measures events that come in one way.
func (b *bench) deliver(ctx context.Context, s *service, l *workload.Load, name string, run func(context.Context, *workload.Load) (*outcome, error), t *table) error {
	before, own, again := s.process.CPU(), workload.OwnCPU(), b.receiver.Again()
	o, err := run(ctx, l)
	if err != nil {
		return err
	}
	arrived := time.Now()
	if err := s.Quiet(ctx); err != nil {
		return err
	}
	used, client := s.process.CPU().Since(before), workload.OwnCPU().Since(own)
	if err := l.CatchUp(ctx); err != nil {
		return err
	}
	p50, p99 := "", ""
	if len(o.latencies) > 0 {
		p50, p99 = milliseconds(o.latencies.Percentile(50)), milliseconds(o.latencies.Percentile(99))
	}
	t.add(fmt.Sprintf("%s, organizations: %d", name, len(l.Tenants)), thousands(o.events), thousands(int(o.perSecond)), p50, p99,
		each(used.Own, o.events), each(used.Table, o.events), each(client.Own, o.events), fmt.Sprintf("%.1f s", time.Since(arrived).Seconds()), thousands(b.receiver.Again()-again))
	return nil
}

// others is the rate of events of organizations that are not busy.
func (b *bench) others() int { return max(1, b.Rate/5) }

// besideImport is the section of what an organization feels of another's import.
func (b *bench) besideImport(ctx context.Context) error {
	t := newTable(fmt.Sprintf("Another organization's events beside an import of %s records", thousands(b.Imported)), "events", "a second", "p50", "p99")
	err := b.withService(ctx, nil, func(s *service) error {
		importer, err := b.load(ctx, s, 1)
		if err != nil {
			return err
		}
		other, err := b.load(ctx, s, 1)
		if err != nil {
			return err
		}
		var arrived atomic.Bool
		group, grouped := errgroup.WithContext(ctx)
		group.Go(func() error {
			defer arrived.Store(true)
			return importer.Import(grouped, b.Imported)
		})
		var latencies workload.Latencies
		started := time.Now()
		group.Go(func() (err error) {
			latencies, err = other.Pace(grouped, time.Second/time.Duration(b.others()), func(int) bool { return !arrived.Load() })
			return err
		})
		if err := group.Wait(); err != nil {
			return err
		}
		t.add(fmt.Sprintf("until the import's events had come, %.0f s", time.Since(started).Seconds()),
			thousands(len(latencies)), thousands(b.others()), milliseconds(latencies.Percentile(50)), milliseconds(latencies.Percentile(99)))
		return nil
	})
	if err != nil {
		return err
	}
	t.print(b.Out)
	return nil
}

// units is the section of what events and requests use of the table.
func (b *bench) units(ctx context.Context) error {
	t := newTable("The table's work for one", "calls", "write units", "read units")
	t.note = "As the table answers, with what is read at an instance's start and what the lists take. A read unit is 4 KB read " +
		"strongly consistent, a write unit 1 KB. Reads of the stream are left out."
	err := b.withService(ctx, &faults.Config{Meter: meter.New()}, func(s *service) error {
		if err := b.requestUnits(ctx, s, t); err != nil {
			return err
		}
		for _, row := range []struct {
			name          string
			organizations int
			run           func(context.Context, *workload.Load) (*outcome, error)
		}{
			{fmt.Sprintf("event of a burst of %s", thousands(b.Events)), 1, b.burst},
			{fmt.Sprintf("event, %d a second one at a time", b.Rate), 1, b.atRate},
			{"event alone in its organization", b.Organizations, func(ctx context.Context, l *workload.Load) (*outcome, error) {
				return b.pace(ctx, l, b.others(), b.Organizations)
			}},
		} {
			l, err := b.load(ctx, s, row.organizations)
			if err == nil {
				err = pause.For(ctx, listsLag)
			}
			if err != nil {
				return err
			}
			err = s.metered(t, row.name, func() (int, error) {
				o, err := row.run(ctx, l)
				if err == nil {
					err = s.Quiet(ctx)
				}
				if err != nil {
					return 0, err
				}
				return o.events, pause.For(ctx, listsLag)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.print(b.Out)
	return nil
}

// listsLag is how long the lists may take for the last records of a load.
const listsLag = 3 * time.Second

// metered adds what a run uses of the table, divided by what it returns.
func (s *service) metered(t *table, name string, run func() (int, error)) error {
	before := s.table.Meter.Total()
	count, err := run()
	if err != nil {
		return err
	}
	after, n := s.table.Meter.Total(), float64(max(1, count))
	t.add(name, amount(float64(after.Calls-before.Calls)/n), amount((after.Writes-before.Writes)/n), amount((after.Reads-before.Reads)/n))
	return nil
}
