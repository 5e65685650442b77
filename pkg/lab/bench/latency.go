package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
)

// steady is events at a steady rate.
type steady struct {
	latencies latencies // from when a record was to be sent to its event's receipt
	late      time.Duration
	processor processorTime
}

// sent are the records of a steady rate with the times at which they were to
// be sent, which are those that count: a sender that is held up does not hide
// that events wait.
type sent struct {
	mu   sync.Mutex
	due  map[value.ID]time.Time
	late time.Duration // of the sender, at most
	err  error
}

// pace sends a record each time as many seconds' part have passed, as long as
// more says so by their number so far. It does not wait for answers.
func (t *tenant) pace(ctx context.Context, rate int, more func(n int) bool) (*sent, error) {
	s := &sent{due: map[value.ID]time.Time{}}
	var group sync.WaitGroup
	started := time.Now()
	for n := 0; more(n); n++ {
		letters, err := t.letters(1)
		if err != nil {
			return nil, err
		}
		due := started.Add(time.Duration(n) * time.Second / time.Duration(rate))
		if err := pause.For(ctx, time.Until(due)); err != nil {
			return nil, err
		}
		group.Go(func() {
			late := time.Since(due)
			err := t.send(ctx, letters[0])
			s.note(letters[0].id, due, late, err)
		})
	}
	group.Wait()
	return s, s.err
}

func (s *sent) note(id value.ID, due time.Time, late time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[id] = due
	s.late = max(s.late, late)
	if s.err == nil {
		s.err = err
	}
}

// steady sends at a steady rate and measures how long the events take.
func (t *tenant) steady(ctx context.Context, rate int, more func(n int) bool) (*steady, error) {
	t.inbox.clear()
	used := t.instance.processor()
	sent, err := t.pace(ctx, rate, more)
	if err != nil {
		return nil, err
	}
	if err := t.inbox.await(ctx, len(sent.due)); err != nil {
		return nil, errors.Join(err, t.instance.left(ctx))
	}
	s := &steady{late: sent.late, processor: t.instance.processor().since(used)}
	got := t.inbox.read()
	for id, due := range sent.due {
		at, arrived := got.arrivals[id]
		if !arrived {
			return nil, fmt.Errorf("product %s was sent and its event did not arrive", id)
		}
		s.latencies = append(s.latencies, at.Sub(due))
	}
	slices.Sort(s.latencies)
	return s, nil
}

// latencyColumns head what cells tells.
func latencyColumns() []string { return []string{"events", "p50", "p95", "p99", "max"} }

func (s *steady) cells() []string {
	return []string{
		thousands(len(s.latencies)), milliseconds(s.latencies.percentile(50)), milliseconds(s.latencies.percentile(95)),
		milliseconds(s.latencies.percentile(99)), milliseconds(s.latencies.percentile(100)),
	}
}

// measureLatency is the section of events at a moderate rate.
func measureLatency(ctx context.Context, w *webhooks) (err error) {
	t := w.table(fmt.Sprintf("Latency at %s events/s for %s", thousands(w.cfg.Rate), w.cfg.Duration),
		append(latencyColumns(), "CPU service", "CPU table")...)
	i, err := w.start(ctx, "latency", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	tenant, err := w.warmed(ctx, i)
	if err != nil {
		return err
	}
	events := int(float64(w.cfg.Rate) * w.cfg.Duration.Seconds())
	s, err := tenant.steady(ctx, w.cfg.Rate, func(n int) bool { return n < events })
	if err != nil {
		return err
	}
	t.add("record's message to receipt, load "+loadAverage(), "p50 ≤ 15 ms, p99 ≤ 60 ms",
		append(s.cells(), perEvent(s.processor.own, events), perEvent(s.processor.table, events))...)
	t.note = fmt.Sprintf("From the time at which a fixed schedule wanted a record's message sent; the sender was at most %s behind it, which the "+
		"latencies include. Whatever becomes of an event, the next is sent on time.", milliseconds(s.late))
	return nil
}
