package eventsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A batchProcessor invokes a function with batches of a stream until every record succeeded or was given up.
type batchProcessor struct {
	function    Function
	host        Host
	partial     bool          // ReportBatchItemFailures
	bisect      bool          // BisectBatchOnFunctionError
	maxAttempts int           // MaximumRetryAttempts, negative: endless
	maxAge      time.Duration // MaximumRecordAgeInSeconds, not positive: endless
	retryMin    time.Duration
	retryMax    time.Duration
	// checkpoint is called, in order, with the last record that succeeded or was given up.
	checkpoint func(record) error
}

// errNotFinished means that the end came before a batch was processed; its rest comes again with the next run.
var errNotFinished = errors.New("the batch is not finished")

// A subBatch is a part of a batch that is still to be processed.
type subBatch struct {
	records []record
	retries int // failed attempts that count against maxAttempts
}

// process returns when every record succeeded or was given up, in order. It returns errNotFinished when ctx ends first.
func (p *batchProcessor) process(ctx context.Context, batch []record) error {
	todo := []subBatch{{records: batch}}
	for failures := 0; len(todo) > 0; {
		head := todo[0]
		fresh, err := p.dropOld(head.records)
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
		done, cause := p.attempt(ctx, head.records)
		if done > 0 {
			failures = 0
			if err := p.checkpoint(head.records[done-1]); err != nil {
				return err
			}
		}
		if cause == nil {
			todo = todo[1:]
			continue
		}
		failures++
		rest, err := p.afterFailure(ctx, head, done, cause)
		if err != nil {
			return err
		}
		todo = slices.Concat(rest, todo[1:])
		if ctx.Err() != nil || len(rest) > 0 && p.host.Wait(ctx, backoff(failures, p.retryMin, p.retryMax)) != nil {
			return errNotFinished
		}
	}
	return nil
}

// functionError is the failure of an invocation as a whole, after which a batch may be bisected.
type functionError struct{ error }

func (e functionError) Unwrap() error { return e.error }

// attempt invokes the function once. It returns how many records from the first succeeded, and why the next did not.
func (p *batchProcessor) attempt(ctx context.Context, records []record) (done int, cause error) {
	failed, err := p.function.handle(ctx, p.host, records, p.partial)
	if err != nil {
		return 0, functionError{err}
	}
	if len(failed) == 0 {
		return len(records), nil
	}
	lowest := slices.IndexFunc(records, func(r record) bool { return slices.Contains(failed, r.id) })
	return lowest, fmt.Errorf("the function %s reports %d of %d records as failed, the first is %s", p.function.Name, len(failed), len(records), records[lowest].id)
}

// afterFailure returns the parts of a failed sub-batch that are still to be processed.
func (p *batchProcessor) afterFailure(ctx context.Context, failed subBatch, done int, cause error) ([]subBatch, error) {
	rest := subBatch{records: failed.records[done:], retries: failed.retries}
	if done > 0 {
		rest.retries = 0
	}
	log := p.host.Logger.With("function", p.function.Name, "records", len(rest.records), "first", rest.records[0].id, "error", cause)
	if whole := (functionError{}); p.bisect && errors.As(cause, &whole) && len(rest.records) > 1 {
		log.WarnContext(ctx, "batch failed, retrying its halves")
		middle := len(rest.records) / 2
		return []subBatch{{rest.records[:middle], rest.retries}, {rest.records[middle:], rest.retries}}, nil
	}
	rest.retries++
	if p.maxAttempts >= 0 && rest.retries > p.maxAttempts {
		log.ErrorContext(ctx, "batch discarded after its last retry")
		return nil, p.checkpoint(rest.records[len(rest.records)-1])
	}
	log.WarnContext(ctx, "batch failed, retrying")
	return []subBatch{rest}, nil
}

// dropOld gives up the records that are older than the mapping allows.
func (p *batchProcessor) dropOld(records []record) ([]record, error) {
	if p.maxAge <= 0 {
		return records, nil
	}
	oldest := p.host.Now().Add(-p.maxAge)
	old := 0
	for old < len(records) && records[old].created.Before(oldest) {
		old++
	}
	if old == 0 {
		return records, nil
	}
	p.host.Logger.Error("records discarded for their age", "function", p.function.Name, "records", old, "first", records[0].id)
	return records[old:], p.checkpoint(records[old-1])
}
