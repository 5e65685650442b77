package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Pace says how many workers do something and for how long. Each does one
// thing at a time.
type Pace struct {
	Workers  int           // at least 1
	Warmup   time.Duration // before what is counted
	Duration time.Duration // of what is counted
}

// Outcome is what the workers came to.
type Outcome struct {
	Requests int           // answered within the duration
	Bytes    int64         // of their bodies
	Duration time.Duration // in which they were
	Failures int           // answers that were not what they had to be
	Failure  error         // the first of them

	latencies latencies     // of every request, ascending
	processor processorTime // used from the first request to the last
	all       int           // requests in that time, warm-up included
}

// PerSecond is the rate of requests.
func (o *Outcome) PerSecond() float64 { return float64(o.Requests) / o.Duration.Seconds() }

// of is the rate as a part of another, "?" of none.
func (o *Outcome) of(whole *Outcome) string {
	if whole.Requests == 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f%%", 100*o.PerSecond()/whole.PerSecond())
}

// Percentile is the latency within which p percent of the requests were
// answered: exact, of all requests, not of a sample or of classes.
func (o *Outcome) Percentile(p float64) time.Duration { return o.latencies.percentile(p) }

// latencies are those of all requests or events, ascending.
type latencies []time.Duration

func (l latencies) percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(l))+0.999999) - 1
	return l[max(0, min(rank, len(l)-1))]
}

// a request is one thing that a worker does. It returns the size of the
// answer, what is wrong with it if anything, and an error when the worker
// cannot go on.
type request func(ctx context.Context) (size int, wrong, err error)

// drive lets each worker make requests until the time is over. It fails when
// one of them cannot go on: the others would only measure a smaller load.
func drive(ctx context.Context, pace Pace, worker func(ctx context.Context, number int) (do request, end func(), err error)) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(pace.Warmup)
	workers := make([]tally, pace.Workers)
	used := processorNow()
	var group sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.begin, w.end = begin, begin.Add(pace.Duration)
		group.Go(func() {
			do, end, err := worker(ctx, i)
			if err == nil {
				err = w.run(ctx, do)
				end()
			}
			if w.err = err; err != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return sum(workers, pace, processorNow().since(used))
}

// tally is what one worker counts.
type tally struct {
	begin, end time.Time
	latencies  []time.Duration
	bytes      int64
	all        int
	failures   int
	failure    error
	err        error
}

func (w *tally) run(ctx context.Context, do request) error {
	for {
		started := time.Now()
		if !started.Before(w.end) {
			return nil
		}
		size, wrong, err := do(ctx)
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		ended := time.Now()
		w.all++
		if wrong != nil {
			if w.failures++; w.failure == nil {
				w.failure = wrong
			}
		}
		if !started.Before(w.begin) && !ended.After(w.end) {
			w.latencies = append(w.latencies, ended.Sub(started))
			w.bytes += int64(size)
		}
	}
}

func sum(workers []tally, pace Pace, used processorTime) (*Outcome, error) {
	o := &Outcome{Duration: pace.Duration, processor: used}
	var errs []error
	for i := range workers {
		w := &workers[i]
		o.Requests += len(w.latencies)
		o.Bytes += w.bytes
		o.all += w.all
		o.Failures += w.failures
		if o.Failure == nil {
			o.Failure = w.failure
		}
		o.latencies = append(o.latencies, w.latencies...)
		if w.err != nil && !errors.Is(w.err, context.Canceled) {
			errs = append(errs, w.err)
		}
	}
	slices.Sort(o.latencies)
	if len(errs) == 0 && workers[0].err != nil {
		errs = append(errs, workers[0].err) // all were cancelled from outside
	}
	return o, errors.Join(errs...)
}
