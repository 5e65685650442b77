package eventsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A delivery hands batches of a stream to a function until they are dealt with, as a stream's mapping says.
type delivery struct {
	function    Function
	host        Host
	partial     bool          // ReportBatchItemFailures
	bisect      bool          // BisectBatchOnFunctionError
	maxAttempts int           // MaximumRetryAttempts, negative: endless
	maxAge      time.Duration // MaximumRecordAgeInSeconds, not positive: endless
	retryMin    time.Duration
	retryMax    time.Duration
	// past is told the last record that is dealt with, in order.
	past func(record) error
}

// errNotFinished says that the end came before a batch was dealt with; its rest comes again with the next run.
var errNotFinished = errors.New("the batch is not dealt with")

// A portion is a piece of a batch on its way.
type portion struct {
	records []record
	retries int // failed attempts that count against maxAttempts
}

// deliver returns when every record succeeded or was given up, in order. It returns errNotFinished when ctx ends first.
func (d *delivery) deliver(ctx context.Context, batch []record) error {
	todo := []portion{{records: batch}}
	for failures := 0; len(todo) > 0; {
		head := todo[0]
		fresh, err := d.dropOld(head.records)
		if err != nil {
			return err
		}
		if len(fresh) == 0 {
			todo = todo[1:]
			continue
		}
		if ctx.Err() != nil {
			return errNotFinished
		}
		head.records = fresh
		done, cause := d.attempt(ctx, head.records)
		if done > 0 {
			failures = 0
			if err := d.past(head.records[done-1]); err != nil {
				return err
			}
		}
		if cause == nil {
			todo = todo[1:]
			continue
		}
		failures++
		rest, err := d.afterFailure(ctx, head, done, cause)
		if err != nil {
			return err
		}
		todo = slices.Concat(rest, todo[1:])
		if ctx.Err() != nil || len(rest) > 0 && d.host.Wait(ctx, backoff(failures, d.retryMin, d.retryMax)) != nil {
			return errNotFinished
		}
	}
	return nil
}

// functionError marks that the invocation failed as a whole, which is what bisection looks at.
type functionError struct{ error }

func (e functionError) Unwrap() error { return e.error }

// attempt invokes the function once. It returns how many records from the first succeeded, and why the next did not.
func (d *delivery) attempt(ctx context.Context, records []record) (done int, cause error) {
	failed, err := d.function.handle(ctx, d.host, records, d.partial)
	if err != nil {
		return 0, functionError{err}
	}
	if len(failed) == 0 {
		return len(records), nil
	}
	for _, id := range failed {
		if !slices.ContainsFunc(records, func(r record) bool { return r.id == id }) {
			return 0, functionError{fmt.Errorf("the function %s reports %q, which is not in its batch, as failed", d.function.Name, id)}
		}
	}
	lowest := slices.IndexFunc(records, func(r record) bool { return slices.Contains(failed, r.id) })
	return lowest, fmt.Errorf("the function %s reports %d of %d records as failed, the first is %s", d.function.Name, len(failed), len(records), records[lowest].id)
}

// afterFailure returns what of a failed portion is still to be delivered.
func (d *delivery) afterFailure(ctx context.Context, failed portion, done int, cause error) ([]portion, error) {
	rest := portion{records: failed.records[done:], retries: failed.retries}
	if done > 0 {
		rest.retries = 0
	}
	log := d.host.Logger.With("function", d.function.Name, "records", len(rest.records), "first", rest.records[0].id, "error", cause)
	if whole := (functionError{}); d.bisect && errors.As(cause, &whole) && len(rest.records) > 1 {
		log.WarnContext(ctx, "batch failed, retrying its halves")
		middle := len(rest.records) / 2
		return []portion{{rest.records[:middle], rest.retries}, {rest.records[middle:], rest.retries}}, nil
	}
	rest.retries++
	if d.maxAttempts >= 0 && rest.retries > d.maxAttempts {
		log.ErrorContext(ctx, "batch discarded after its last retry")
		return nil, d.past(rest.records[len(rest.records)-1])
	}
	log.WarnContext(ctx, "batch failed, retrying")
	return []portion{rest}, nil
}

// dropOld gives up the records that are older than the mapping allows.
func (d *delivery) dropOld(records []record) ([]record, error) {
	if d.maxAge <= 0 {
		return records, nil
	}
	oldest := d.host.Now().Add(-d.maxAge)
	old := 0
	for old < len(records) && records[old].created.Before(oldest) {
		old++
	}
	if old == 0 {
		return records, nil
	}
	d.host.Logger.Error("records discarded for their age", "function", d.function.Name, "records", old, "first", records[0].id)
	return records[old:], d.past(records[old-1])
}
