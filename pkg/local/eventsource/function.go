// Package eventsource invokes functions as Lambda's event source mappings and EventBridge's schedules do: from a
// DynamoDB stream, from an SQS queue and by the clock, over the network with the real SDK clients.
//
// Batches, filters, partial failures, retries, checkpoints and event JSON are Lambda's, so that a handler cannot see
// the difference. No record is lost when the runner is killed: a batch that was not finished comes again. Callers read
// the template, run the functions and trim the stream. A stream has one shard, as the local table server makes it, and a
// filter compares texts of the new image; other streams and filters are refused.
package eventsource

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// maxPayload is the size of an event at which Lambda closes a batch, in bytes.
const maxPayload = 6 << 20

// unwind is how long a function whose time is over may take to return before it is abandoned.
const unwind = time.Second

// Invoke calls a function with an event and returns its answer, both as Lambda's invoke JSON. An error is a function
// error; the implementation turns a panic into one. The context's deadline is the function's timeout.
type Invoke func(ctx context.Context, payload []byte) ([]byte, error)

// A Function is a function that an event source invokes.
type Function struct {
	Name    string // for logs and errors
	Timeout time.Duration
	Invoke  Invoke

	// Changes and Messages are Invoke without the JSON text, for functions of this process that take the event's type:
	// nil for others. Functions share what an event points to, and must only read it.
	Changes  func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBTimeWindowEventResponse, error)
	Messages func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

	After func() // is called after each invocation, unless it is nil
}

// Host holds the settings that all event sources of a runner share. Its zero value is usable.
type Host struct {
	Region string        // awsRegion of the events
	Grace  time.Duration // how long an invocation may continue once the source was told to end, default 10 s
	Logger *slog.Logger  // default: nothing is logged

	spare chan func() // goroutines that wait for their next call
}

func (h Host) withDefaults() Host {
	if h.Grace <= 0 {
		h.Grace = 10 * time.Second
	}
	h.Logger = cmp.Or(h.Logger, slog.New(slog.DiscardHandler))
	h.spare = make(chan func())
	return h
}

// start calls f in another goroutine, which waits for its next call until ctx ends: the calls of the SDK are deep, and
// each new goroutine would grow its stack for them.
func (h Host) start(ctx context.Context, f func()) {
	select {
	case h.spare <- f:
		return
	default:
	}
	go func() {
		for {
			f()
			select {
			case f = <-h.spare:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// call invokes the function with an event.
func (f Function) call(ctx context.Context, host Host, payload []byte) ([]byte, error) {
	return within(ctx, f, host, func(ctx context.Context) ([]byte, error) { return f.Invoke(ctx, payload) })
}

// handle invokes the function with the event of a batch and returns the ids of the records that it reports as failed,
// if it may report them (ReportBatchItemFailures). As in Lambda, an answer that names an empty or unknown id is an
// error.
func (f Function) handle(ctx context.Context, host Host, batch []record, partial bool) ([]string, error) {
	failed, err := within(ctx, f, host, func(ctx context.Context) ([]string, error) {
		return f.report(ctx, batch, partial)
	})
	if err != nil || !partial {
		return nil, err
	}
	for _, id := range failed {
		if id == "" || !contains(batch, id) {
			return nil, fmt.Errorf("the function %s reports %q, which is not in its batch, as failed", f.Name, id)
		}
	}
	return failed, nil
}

// report invokes the function, without JSON if it takes the event's type, and returns the ids that it reports as failed.
func (f Function) report(ctx context.Context, batch []record, partial bool) ([]string, error) {
	switch {
	case batch[0].change != nil && f.Changes != nil:
		answer, err := f.Changes(ctx, changesOf(batch))
		return identifiers(answer.BatchItemFailures), err
	case batch[0].message != nil && f.Messages != nil:
		answer, err := f.Messages(ctx, messagesOf(batch))
		return identifiers(answer.BatchItemFailures), err
	}
	payload, err := payloadOf(batch)
	if err != nil {
		return nil, err
	}
	answer, err := f.Invoke(ctx, payload)
	if err != nil || !partial {
		return nil, err
	}
	return failedItems(answer)
}

// failedItems reads the identifiers in a function's partial batch response. An empty answer, null, {} and a null or
// empty list mean that nothing failed.
func failedItems(answer []byte) ([]string, error) {
	if answer = bytes.TrimSpace(answer); len(answer) == 0 {
		return nil, nil
	}
	var response events.SQSEventResponse // of a stream it is the same
	if err := json.Unmarshal(answer, &response); err != nil {
		return nil, fmt.Errorf("reading the batch item failures of the answer: %w", err)
	}
	return identifiers(response.BatchItemFailures), nil
}

func identifiers[F events.DynamoDBBatchItemFailure | events.SQSBatchItemFailure](failures []F) []string {
	ids := make([]string, len(failures))
	for i, one := range failures {
		ids[i] = events.SQSBatchItemFailure(one).ItemIdentifier
	}
	return ids
}

// within runs an invocation within the function's timeout. The end of ctx does not end it, but bounds it to the host's
// grace. A function that ignores its context is abandoned shortly after its time, as its sandbox would be.
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
	if f.After != nil {
		defer f.After()
	}

	type outcome struct {
		answer A
		err    error
	}
	done := make(chan outcome, 1)
	host.start(ctx, func() {
		answer, err := invoke(run)
		done <- outcome{answer, err}
	})
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
func backoff(n int) time.Duration {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	return min(first<<min(n-1, 10), most)
}
