// Package bench measures the service on this machine. It runs the whole of it as a process, sends records and requests
// through the sockets that a user's go through, and prints tables. The Go benchmarks in a package measure what that
// package does alone.
package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// Config says how much to measure.
type Config struct {
	Events        int           // of a burst
	Lone          int           // events that come one at a time
	Organizations int           // that events are spread over
	Imported      int           // records that one more organization imports beside them
	Products      int           // that the lists show
	Duration      time.Duration // of a load of requests
	Steady        time.Duration // of events at a steady rate
	Rest          time.Duration // of the index, before and after each measurement

	Out io.Writer // of the report
	Log io.Writer // of progress
}

// bench is one run with a service.
type bench struct {
	Config
	service *workload.Service
	meter   *faults.Meter // of its table
	table   *table        // gets the rows
}

// Run measures and writes the report as a page of Markdown.
func Run(ctx context.Context, cfg Config) error {
	fmt.Fprintf(cfg.Out, head, thisMachine(time.Now()))
	deliveries := newTable("Deliveries", "events", "a second", "p50", "p99", "lists")
	for _, organizations := range []int{1, cfg.Organizations} {
		if err := cfg.withService(ctx, deliveries, func(b *bench) error { return b.deliveries(ctx, organizations) }); err != nil {
			return fmt.Errorf("measure deliveries: %w", err)
		}
	}
	deliveries.print(cfg.Out)
	reads := newTable(fmt.Sprintf("Reads over HTTP, %d products", cfg.Products), "connections", "a second", "p50", "p99")
	if err := cfg.withService(ctx, reads, func(b *bench) error { return b.reads(ctx) }); err != nil {
		return fmt.Errorf("measure reads: %w", err)
	}
	reads.print(cfg.Out)
	fmt.Fprint(cfg.Out, notes)
	return nil
}

const head = `# Measured

` + "`make measured`" + ` writes this page in about eight minutes. Everything runs on one machine, the client, the receivers and
what stands in for AWS too. The machine's speed varies by half from day to day: compare what was measured together.

On %s.
`

// notes say how it was measured.
const notes = `
An event's latency is from its record's message, at a rate from when the record was due, to its receipt. A payload has
about 1 KB, each record is new and in a message of its own, and each organization has an endpoint. Lists is how long after
the last event the lists of the last organizations show all of their records and outcomes. A list has pages of 20. The walk and
the feed have pages of 1000: their latencies are of a page, their other figures of an entry.
What an import, or a dead receiver, uses counts for the events beside it.

Of one event or answer then: the CPU of the service, one process with queue server, gateway and event sources, and of the
table server; what the table answers, with what the lists take; and what the functions log. A read unit is 4 KB read strongly
consistent, a write unit 1 KB; on demand, a million cost $0.125 and $0.625 in us-east-1, and a GB of logs $0.50. Left out are
reads of the stream, SQS, Lambda, API Gateway, and the functions' metrics: a line of up to 600 bytes for each minute in which
an instance works. A proxy counts the units: it slows what reads the table, records by id by about a half.
`

func (c Config) withService(ctx context.Context, t *table, measure func(*bench) error) error {
	b := &bench{Config: c, meter: faults.NewMeter(), table: t}
	accept := func(string) (int, time.Duration) { return http.StatusOK, 0 }
	return workload.Run(ctx, faults.Config{Meter: b.meter}, accept, func(s *workload.Service) error {
		b.service = s
		if err := s.Start(ctx, "--log-level", "info"); err != nil { // the functions' in AWS
			return err
		}
		return measure(b)
	})
}

// figures are those of a row.
type figures struct {
	of        int // events or answers
	perSecond float64
	latencies workload.Latencies
	lists     time.Duration // until they showed all events, after the last; 0 when that was not measured
}

// measure adds a row of what a run comes to, and of what the service uses for it, its index included.
func (b *bench) measure(ctx context.Context, name string, amount int, run func() (figures, error)) error {
	if err := pause.For(ctx, b.Rest); err != nil {
		return err
	}
	fmt.Fprintf(b.Log, "%s …\n", name)
	b.meter.Reset()
	service, table := b.service.CPU()
	logged := b.service.Logged()
	f, err := run()
	if err == nil {
		err = pause.For(ctx, b.Rest)
	}
	if err != nil {
		return err
	}
	serviceAfter, tableAfter := b.service.CPU()
	b.table.add(name, amount, f, serviceAfter-service, tableAfter-table, b.meter.Total(), b.service.Logged()-logged)
	return nil
}

// load is events at a rate, or in a burst.
type load struct {
	name   string
	events int
	within time.Duration // 0 is a burst
	delay  time.Duration // of the table, on average
	beside func(context.Context) error
}

// deliveries measures events of so many organizations: one at a time, in a burst, and again after it. Where there are
// many, the first come so that each is alone in its organization, and others follow at a steady rate: beside an import of
// another organization, beside one with a dead receiver, and while the table is slow.
func (b *bench) deliveries(ctx context.Context, organizations int) error {
	l, err := b.service.NewLoad(ctx, organizations, b.service.Receiver.URL)
	if err != nil {
		return err
	}
	const warmup = 300 // events, so that connections are open and code has run
	if _, _, err := l.Run(ctx, min(max(warmup, organizations), b.Events), 0); err != nil {
		return err
	}
	lone, burst := time.Duration(b.Lone)*10*time.Millisecond, load{name: "burst", events: b.Events}
	single := load{name: "one at a time", events: b.Lone, within: lone}
	loads := []load{single, burst, {name: "one at a time after it", events: b.Lone, within: lone}}
	if organizations > 1 {
		steady := func(name string, rate float64) load { // in events a second
			return load{name: "steady, " + name, events: int(rate * b.Steady.Seconds()), within: b.Steady}
		}
		alone := time.Duration(organizations) * 50 * time.Millisecond
		loads = []load{{name: "alone in its organization", events: organizations, within: alone}, single, burst}
		loads = append(loads, steady("beside an import", 20), steady("beside a dead receiver", 20), steady("table after 10 ms", 100))
		loads[3].beside, loads[4].beside, loads[5].delay = b.importRecords, b.sendInVain, 10*time.Millisecond
	}
	for _, row := range loads {
		name := fmt.Sprintf("%s, organizations: %d", row.name, organizations)
		if err := b.measure(ctx, name, row.events, func() (figures, error) { return b.deliver(ctx, l, row) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) deliver(ctx context.Context, l *workload.Load, row load) (figures, error) {
	b.service.Faults.SetDelay(row.delay)
	f := figures{of: row.events}
	running, both := errgroup.WithContext(ctx)
	if row.beside != nil {
		running.Go(func() error { return row.beside(both) })
	}
	running.Go(func() error {
		latencies, took, err := l.Run(both, row.events, row.within)
		f.perSecond = float64(row.events) / took.Seconds()
		if row.within > 0 { // else they say only how long the burst was
			f.latencies = latencies
		}
		return err
	})
	if err := running.Wait(); err != nil {
		return f, err
	}
	ended := time.Now()
	err := l.AwaitLists(ctx)
	f.lists = time.Since(ended)
	return f, err
}

// importRecords has one more organization import records, and waits until they are listed.
func (b *bench) importRecords(ctx context.Context) error {
	t, err := b.service.NewTenant(ctx)
	if err != nil {
		return err
	}
	if err := b.service.Store(ctx, t.ID, b.Imported); err != nil {
		return err
	}
	return workload.AwaitTotal(ctx, t.API, "/api/products?limit=1", b.Imported)
}

// sendInVain has one more organization send 300 events a second to a port on which nothing listens.
func (b *bench) sendInVain(ctx context.Context) error {
	l, err := b.service.NewLoad(ctx, 1, "http://127.0.0.1:9")
	if err != nil {
		return err
	}
	_, _, err = l.Send(ctx, int(300*b.Steady.Seconds()), b.Steady)
	return err
}
