package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// firstEvents go through a service before what is measured, so that
// connections are open and code has run.
const firstEvents = 300

// flow is events that went through the service.
type flow struct {
	events     int
	took       time.Duration // from the first message to the last receipt
	duplicates int
	payload    float64       // bytes of one, in the mean
	service    processorTime // until all bookkeeping was done
	bench      time.Duration // processor time of this process: sender and receiver
}

func (f *flow) perSecond() float64 { return float64(f.events) / f.took.Seconds() }

// flow sends so many records as fast as the queue takes them, and waits until
// all of their events have arrived and are accounted for.
func (t *tenant) flow(ctx context.Context, events int) (*flow, error) {
	letters, err := t.letters(events)
	if err != nil {
		return nil, err
	}
	t.inbox.clear()
	used, own, started := t.instance.processor(), ownProcessor(), time.Now()
	if err := t.sendAll(ctx, letters); err != nil {
		return nil, err
	}
	if err := t.inbox.await(ctx, events); err != nil {
		return nil, errors.Join(err, t.instance.left(ctx))
	}
	if err := t.instance.quiet(ctx); err != nil {
		return nil, err
	}
	f := &flow{events: events, service: t.instance.processor().since(used), bench: ownProcessor() - own}
	got := t.inbox.read()
	for i := range letters {
		if _, arrived := got.arrivals[letters[i].id]; !arrived {
			return nil, fmt.Errorf("product %s was sent and its event did not arrive", letters[i].id)
		}
	}
	f.took, f.duplicates = got.last.Sub(started), got.duplicates
	f.payload = float64(got.bytes) / float64(got.receipts)
	return f, nil
}

// warmed is an organization of the service that has had its first events.
func (w *webhooks) warmed(ctx context.Context, i *instance) (*tenant, error) {
	t, err := i.admit(ctx, w.receiver)
	if err != nil {
		return nil, err
	}
	_, err = t.flow(ctx, min(firstEvents, w.cfg.Events))
	return t, err
}

// measureEndToEnd is the section of deliveries as fast as they go.
func measureEndToEnd(ctx context.Context, w *webhooks) (err error) {
	t := w.table(fmt.Sprintf("End to end: %s events, one endpoint, each record in a message of its own", thousands(w.cfg.Events)),
		"events/s", "duplicates", "CPU service", "CPU table", "CPU sender, receiver", "payload")
	t.note = "From the first message sent to the last receipt; CPU per event, until all outcomes are written. The service is one process as commerce run " +
		"makes it, queue server, gateway and event sources included, the table server another; sender and receiver are in the bench's own. All share the cores."
	i, err := w.start(ctx, "end-to-end", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	tenant, err := w.warmed(ctx, i)
	if err != nil {
		return err
	}
	for round := range w.cfg.Rounds {
		f, err := tenant.flow(ctx, w.cfg.Events)
		if err != nil {
			return err
		}
		w.reached = max(w.reached, f.perSecond())
		t.add(fmt.Sprintf("round %d, load %s", round+1, loadAverage()), "≥ 500/s, 0 duplicates, service ≤ 0.7 ms",
			thousands(int(f.perSecond())), thousands(f.duplicates), perEvent(f.service.own, f.events), perEvent(f.service.table, f.events),
			perEvent(f.bench, f.events), kilobytes(f.payload))
	}
	return nil
}

// perEvent is the part of one event.
func perEvent(d time.Duration, events int) string {
	if d == 0 {
		return "?"
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1000/float64(events))
}
