// Package eventsource invokes functions as Lambda's event source mappings and EventBridge's schedules do: from a
// DynamoDB stream, from an SQS queue and by the clock, over the wire with the real SDK clients.
// It promises Lambda's batches, filters, partial failures, retries, checkpoints and event JSON, so that a handler cannot
// tell the difference, and that no record is lost when the runner is killed: what was not finished comes again.
// Reading the template, running the functions and trimming the stream are left to the caller.
package eventsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/pause"
)

// maxPayload is the size of an event at which Lambda closes a batch, in bytes.
const maxPayload = 6 << 20

// unwind is how long a function whose time is over may take to return before it is left to itself.
const unwind = time.Second

// Invoke calls a function with an event and returns its answer, both as Lambda's invoke JSON. An error is a function
// error; a panic is the implementation's to turn into one. The context's deadline is the function's timeout.
type Invoke func(ctx context.Context, payload []byte) ([]byte, error)

// A Function is what an event source invokes.
type Function struct {
	Name    string        // for logs and errors
	Timeout time.Duration // default 3 s, as Lambda's
	Invoke  Invoke

	// Changes and Messages are Invoke without the JSON text, for functions of this process that take the event's type: nil
	// for others. What is in an event may be in another function's as well, and is to be read only.
	Changes  func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)
	Messages func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
}

// Host is what the runner lends to its event sources. Its zero value is usable.
type Host struct {
	Region string        // awsRegion of the events; default: what the record says, else "local"
	Grace  time.Duration // how long an invocation may go on after the end was asked for, default 10 s
	Logger *slog.Logger  // default: nothing is logged
	Now    func() time.Time
	// Wait returns after d, or with the context's error. The default uses the real clock.
	Wait func(ctx context.Context, d time.Duration) error
}

func (h Host) withDefaults() Host {
	if h.Grace <= 0 {
		h.Grace = 10 * time.Second
	}
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Wait == nil {
		h.Wait = pause.For
	}
	return h
}

func (f Function) check() (Function, error) {
	if f.Invoke == nil {
		return f, fmt.Errorf("function %q has nothing to invoke", f.Name)
	}
	if f.Timeout <= 0 {
		f.Timeout = 3 * time.Second
	}
	return f, nil
}

// call invokes the function with an event.
func (f Function) call(ctx context.Context, host Host, payload []byte) ([]byte, error) {
	return within(ctx, f, host, func(ctx context.Context) ([]byte, error) { return f.Invoke(ctx, payload) })
}

// handle invokes the function with the event of a batch, and returns which of it the answer says failed, if anybody looks.
func (f Function) handle(ctx context.Context, host Host, batch []record, look bool) (failed []string, err error) {
	switch {
	case batch[0].change != nil:
		answer, err := within(ctx, f, host, func(ctx context.Context) (events.DynamoDBEventResponse, error) {
			return f.Changes(ctx, changesOf(batch))
		})
		if err != nil || !look {
			return nil, err
		}
		return identifiers(answer.BatchItemFailures, func(one events.DynamoDBBatchItemFailure) string { return one.ItemIdentifier })
	case batch[0].message != nil:
		answer, err := within(ctx, f, host, func(ctx context.Context) (events.SQSEventResponse, error) {
			return f.Messages(ctx, messagesOf(batch))
		})
		if err != nil || !look {
			return nil, err
		}
		return identifiers(answer.BatchItemFailures, func(one events.SQSBatchItemFailure) string { return one.ItemIdentifier })
	}
	answer, err := f.call(ctx, host, envelope(batch))
	if err != nil || !look {
		return nil, err
	}
	return failedItems(answer)
}

// within runs an invocation within the function's timeout. The end of ctx does not end it, but bounds it to the host's
// grace. A function that ignores its context is left behind shortly after its time, as its sandbox would be.
func within[A any](ctx context.Context, f Function, host Host, invoke func(ctx context.Context) (A, error)) (answer A, err error) {
	run, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), f.Timeout,
		fmt.Errorf("task timed out after %.2f seconds", f.Timeout.Seconds()))
	defer cancel()
	run, end := context.WithCancelCause(run)
	defer end(nil)
	stop := context.AfterFunc(ctx, func() {
		if pause.For(run, host.Grace) == nil {
			end(errors.New("the runner ended"))
		}
	})
	defer stop()

	type outcome struct {
		answer A
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := invoke(run)
		done <- outcome{answer, err}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-run.Done():
		late := time.NewTimer(unwind)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		}
		got.err = run.Err()
	}
	if got.err != nil && run.Err() != nil {
		got.err = context.Cause(run)
	}
	if got.err != nil {
		return answer, fmt.Errorf("invoking %s: %w", f.Name, got.err)
	}
	return got.answer, nil
}

// backoff is the exponential pause before the nth retry in a row, n from 1.
func backoff(n int, first, most time.Duration) time.Duration {
	pause := first
	for ; n > 1 && pause < most; n-- {
		pause *= 2
	}
	return min(pause, most)
}
