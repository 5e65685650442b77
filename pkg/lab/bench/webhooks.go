package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// warmupEvents go through a service before what is measured, so that
// connections are open and code has run.
const warmupEvents = 300

// withService runs a service without data in a process of its own.
func (b *bench) withService(ctx context.Context, name string, measure func(*workload.Process, *workload.Service) error) (err error) {
	p, err := workload.NewProcess(ctx, []string{b.Program}, nil, b.BinDir, filepath.Join(b.dir, name), b.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s, err := p.Start(ctx, "--template", b.Template)
	if err != nil {
		return err
	}
	return measure(p, s)
}

// tenant is an organization of the service that has had its first events.
func (b *bench) tenant(ctx context.Context, s *workload.Service) (*workload.Tenant, error) {
	t, err := s.NewTenant(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.Subscribe(ctx, b.receiver); err != nil {
		return nil, err
	}
	if _, err := t.Flow(ctx, min(warmupEvents, b.Events)); err != nil {
		return nil, err
	}
	return t, s.Quiet(ctx)
}

// embeddedTenant is one of the service in this process, where its calls can be
// metered.
func (b *bench) embeddedTenant(ctx context.Context) (*shop, *workload.Tenant, error) {
	s, err := b.embed(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, err := b.tenant(ctx, s.Service)
	return s, t, err
}

// endToEnd is the section of deliveries as fast as they go.
func (b *bench) endToEnd(ctx context.Context) error {
	t := b.table(fmt.Sprintf("End to end: %s events, one endpoint, each record in a message of its own", thousands(b.Events)),
		"events/s", "duplicates", "CPU service", "CPU table", "CPU sender, receiver", "payload")
	t.note = "From the first message sent to the last receipt; CPU per event, until all outcomes are written. The service is one process, commerce run, " +
		"with queue server, gateway and event sources; the table server is another, and sender and receiver are in a third. All share the cores."
	return b.withService(ctx, "end-to-end", func(p *workload.Process, s *workload.Service) error {
		tenant, err := b.tenant(ctx, s)
		if err != nil {
			return err
		}
		for round := range b.Rounds {
			before, own := p.CPU(), workload.OwnCPU()
			f, err := tenant.Flow(ctx, b.Events)
			if err == nil {
				err = s.Quiet(ctx)
			}
			if err != nil {
				return err
			}
			used := p.CPU().Since(before)
			t.add(fmt.Sprintf("round %d, load %s", round+1, loadAverage()), "≥ 500/s, 0 duplicates, service ≤ 0.7 ms",
				thousands(int(float64(b.Events)/f.Took.Seconds())), thousands(f.Duplicates), workload.PerEvent(used.Own, b.Events),
				workload.PerEvent(used.Table, b.Events), workload.PerEvent(workload.OwnCPU().Since(own).Own, b.Events), kilobytes(float64(f.Bytes)/float64(f.Receipts)))
		}
		return nil
	})
}

// tablePerEvent is the section of what a delivery uses of the table.
func (b *bench) tablePerEvent(ctx context.Context) error {
	s, tenant, err := b.embeddedTenant(ctx)
	if err != nil {
		return err
	}
	var f *workload.Flow
	var uses map[meter.Use]meter.Units
	_, err = b.labelled("table", func() (err error) {
		uses, err = b.metering(func() (err error) {
			if f, err = tenant.Flow(ctx, b.Events); err != nil {
				return err
			}
			return s.Quiet(ctx)
		})
		return err
	})
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("The table's work for one delivered event, payload %s", kilobytes(float64(f.Bytes)/float64(f.Receipts))), "write units", "read units", "calls")
	t.note = fmt.Sprintf("As the table tells it for %s events. A call that writes several kinds of item counts as the kind of its first. "+
		"Refused calls tell nothing.", thousands(b.Events))
	b.useRows(t, uses, float64(b.Events), "≤ 3 write units", "≤ 5 write units")
	return nil
}

// filtered is the section of events of which a filter keeps out most.
func (b *bench) filtered(ctx context.Context) error {
	s, tenant, err := b.embeddedTenant(ctx)
	if err != nil {
		return err
	}
	if err := tenant.Filter(ctx); err != nil {
		return err
	}
	uses, err := b.metering(func() error {
		if err := tenant.FlowFiltered(ctx, b.Events); err != nil {
			return err
		}
		return s.Quiet(ctx)
	})
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("The table's work for one of %s events, of which one in %d passes the endpoint's filter", thousands(b.Events), workload.OneIn),
		"write units", "read units", "calls")
	t.note = "Against the same rows of events that all pass."
	b.useRows(t, uses, float64(b.Events), "≤ 5% of the write units", "")
	return nil
}

// latencyColumns head the cells of latencies.
func latencyColumns(more ...string) []string {
	return append([]string{"events", "p50", "p95", "p99", "max"}, more...)
}

func latencyCells(l workload.Latencies, more ...string) []string {
	return append([]string{
		thousands(len(l)), milliseconds(l.Percentile(50)), milliseconds(l.Percentile(95)), milliseconds(l.Percentile(99)), milliseconds(l.Percentile(100)),
	}, more...)
}

// latency is the section of events at a moderate rate.
func (b *bench) latency(ctx context.Context) error {
	t := b.table(fmt.Sprintf("Latency at %s events/s for %s", thousands(b.Rate), b.Duration), latencyColumns("CPU service", "CPU table")...)
	return b.withService(ctx, "latency", func(p *workload.Process, s *workload.Service) error {
		tenant, err := b.tenant(ctx, s)
		if err != nil {
			return err
		}
		var late time.Duration
		stored := min(warmupEvents, b.Events)
		for _, wanted := range b.Stored {
			if wanted > stored {
				if _, err := tenant.Flow(ctx, wanted-stored); err != nil {
					return err
				}
				if err := s.Quiet(ctx); err != nil {
					return err
				}
				stored = wanted
			}
			before := p.CPU()
			paced, err := tenant.Pace(ctx, time.Second/time.Duration(b.Rate), b.eventsOf(b.Rate))
			if err != nil {
				return err
			}
			used := p.CPU().Since(before)
			t.add(fmt.Sprintf("%s events stored before, load %s", thousands(stored), loadAverage()), "p50 ≤ 8 ms, p99 ≤ 30 ms",
				latencyCells(paced.Latencies, workload.PerEvent(used.Own, paced.Sent), workload.PerEvent(used.Table, paced.Sent))...)
			late, stored = max(late, paced.Late), stored+paced.Sent
		}
		t.note = fmt.Sprintf("A latency is the time between two moments: the schedule calls for a record's message, and the receiver gets its event. It includes the sender's delay, at most %s. "+
			"The sender waits for no event. A burst makes the events that are stored before a row.", milliseconds(late))
		return nil
	})
}

// eventsOf tells as long as more events are to be sent at a rate.
func (b *bench) eventsOf(rate int) func(n int) bool {
	events := int(float64(rate) * b.Duration.Seconds())
	return func(n int) bool { return n < events }
}

// isolation is the section of what an organization feels of another.
func (b *bench) isolation(ctx context.Context) error {
	t := b.table(fmt.Sprintf("Isolation: another organization's events, %d/s", b.Others), latencyColumns()...)
	t.note = "From a record's message to its event's receipt, on a fixed schedule. The endpoint that hangs takes requests and never answers, " +
		"until its timeout of 15 s. The import is in messages of 400 records, and its organization has an endpoint that gets an event of each."
	every := time.Second / time.Duration(b.Others)
	if err := b.twoTenants(ctx, "hanging", func(s *workload.Service, one, other *workload.Tenant) error {
		alone, err := other.Pace(ctx, every, b.eventsOf(b.Others))
		if err != nil {
			return err
		}
		t.add("nothing else going on", "", latencyCells(alone.Latencies)...)
		end := one.Inbox.Hang()
		defer end()
		if _, err := one.Send(ctx, b.Waiting); err != nil {
			return err
		}
		coming, err := other.Pace(ctx, every, b.eventsOf(b.Others))
		if err != nil {
			return err
		}
		t.add(fmt.Sprintf("while %s events come for an endpoint that hangs", thousands(b.Waiting)), "", latencyCells(coming.Latencies)...)
		if err := s.Dispatched(ctx); err != nil {
			return err
		}
		waiting, err := other.Pace(ctx, every, b.eventsOf(b.Others))
		if err != nil {
			return err
		}
		t.add("while they wait for it", "p99 ≤ 150 ms", latencyCells(waiting.Latencies)...)
		return nil
	}); err != nil {
		return err
	}
	return b.twoTenants(ctx, "import", func(_ *workload.Service, importer, other *workload.Tenant) error {
		started := time.Now()
		var arrived atomic.Bool
		group, grouped := errgroup.WithContext(ctx)
		group.Go(func() error {
			defer arrived.Store(true)
			if err := importer.Import(grouped, b.Imported); err != nil {
				return err
			}
			return importer.Inbox.Await(grouped, b.Imported)
		})
		var paced *workload.Paced
		group.Go(func() (err error) {
			paced, err = other.Pace(grouped, every, func(int) bool { return !arrived.Load() })
			return err
		})
		if err := group.Wait(); err != nil {
			return err
		}
		t.add(fmt.Sprintf("beside an import of %s records, whose events took %.0f s", thousands(b.Imported), time.Since(started).Seconds()),
			"p99 ≤ 500 ms", latencyCells(paced.Latencies)...)
		return nil
	})
}

// twoTenants measures on a service with two organizations, which is killed at
// the end: attempts may still be under way.
func (b *bench) twoTenants(ctx context.Context, name string, measure func(s *workload.Service, one, other *workload.Tenant) error) error {
	return b.withService(ctx, name, func(_ *workload.Process, s *workload.Service) error {
		one, err := b.tenant(ctx, s)
		if err != nil {
			return err
		}
		other, err := b.tenant(ctx, s)
		if err != nil {
			return err
		}
		return measure(s, one, other)
	})
}
