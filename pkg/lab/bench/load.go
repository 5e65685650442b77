package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/lab/workload"
)

// Pace says how many workers do something and for how long. Each does one
// thing at a time.
type Pace struct {
	Workers  int           // at least 1
	Warmup   time.Duration // before what is counted
	Duration time.Duration // of what is counted
}

// Outcome is what a load came to.
type Outcome struct {
	Requests int           // answered within the duration
	Bytes    int64         // of their bodies
	Duration time.Duration // in which they were
	Failures int           // wrong answers
	Failure  error         // the first of them

	latencies workload.Latencies // of the requests, ascending
	all       int                // requests, warm-up included
	cpu       workload.CPU       // used by all of them
}

// PerSecond is the rate of requests.
func (o *Outcome) PerSecond() float64 { return float64(o.Requests) / o.Duration.Seconds() }

// request does one thing. It returns the size of the answer, what is wrong with
// it if anything, and an error when the worker cannot go on.
type request func(ctx context.Context) (size int, wrong, err error)

// drive lets each worker make requests until the time is over. It fails when
// one of them cannot go on: the others would only measure a smaller load.
func drive(ctx context.Context, pace Pace, worker func(ctx context.Context, number int) (do request, end func(), err error)) (*Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	used := workload.OwnCPU()
	total := &Outcome{Duration: pace.Duration}
	var mu sync.Mutex // guards total
	var group sync.WaitGroup
	begin := time.Now().Add(pace.Warmup)
	for i := range pace.Workers {
		group.Go(func() {
			do, end, err := worker(ctx, i)
			own := &Outcome{}
			if err == nil {
				err = own.run(ctx, do, begin, begin.Add(pace.Duration))
				end()
			}
			if err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(own)
		})
	}
	group.Wait()
	slices.Sort(total.latencies)
	total.cpu = workload.OwnCPU().Since(used)
	return total, context.Cause(ctx)
}

func (o *Outcome) run(ctx context.Context, do request, begin, end time.Time) error {
	for {
		started := time.Now()
		if !started.Before(end) {
			return nil
		}
		size, wrong, err := do(ctx)
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		ended := time.Now()
		o.all++
		if wrong != nil {
			if o.Failures++; o.Failure == nil {
				o.Failure = wrong
			}
		}
		if !started.Before(begin) && !ended.After(end) {
			o.latencies = append(o.latencies, ended.Sub(started))
			o.Bytes += int64(size)
		}
	}
}

func (o *Outcome) add(own *Outcome) {
	o.Requests += len(own.latencies)
	o.latencies = append(o.latencies, own.latencies...)
	o.Bytes, o.all, o.Failures = o.Bytes+own.Bytes, o.all+own.all, o.Failures+own.Failures
	if o.Failure == nil {
		o.Failure = own.Failure
	}
}

// Load says what a load generator asks. Each worker has one connection, which
// stays open, with one request under way at a time.
type Load struct {
	Pace
	Address string      // host:port
	Targets []string    // paths with queries, asked in turn
	Header  http.Header // of every request
	// Check judges an answer's body; nil takes any. An answer other than 200
	// is wrong before that.
	Check func(header http.Header, body []byte) error
}

// Run makes the load. It fails when a connection breaks; a wrong answer is
// counted and the load goes on.
func (l *Load) Run(ctx context.Context) (*Outcome, error) {
	return drive(ctx, l.Pace, func(_ context.Context, number int) (request, func(), error) {
		transport := &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}
		next, body := number*len(l.Targets)/l.Workers, bytes.Buffer{}
		return func(ctx context.Context) (int, error, error) {
			target := l.Targets[next]
			next = (next + 1) % len(l.Targets)
			wrong, err := l.ask(ctx, transport, target, &body)
			if wrong != nil {
				wrong = fmt.Errorf("GET %s: %w", target, wrong)
			}
			return body.Len(), wrong, err
		}, transport.CloseIdleConnections, nil
	})
}

func (l *Load) ask(ctx context.Context, transport *http.Transport, target string, body *bytes.Buffer) (wrong, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Address+target, nil)
	if err != nil {
		return nil, err
	}
	r.Header = l.Header
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	defer answer.Body.Close()
	body.Reset()
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	switch {
	case answer.Close:
		return nil, fmt.Errorf("the connection was closed after status %d: %w", answer.StatusCode, io.ErrUnexpectedEOF)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %.200s", answer.StatusCode, body.Bytes()), nil
	case l.Check != nil:
		return l.Check(answer.Header, body.Bytes()), nil
	}
	return nil, nil
}
