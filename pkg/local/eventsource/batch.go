package eventsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A batchProcessor invokes a function with batches of a stream until every record succeeded.
type batchProcessor struct {
	function Function
	host     Host
	partial  bool // ReportBatchItemFailures
	bisect   bool // BisectBatchOnFunctionError
	retryMin time.Duration
	retryMax time.Duration
	// checkpoint is called, in order, with the last record that succeeded.
	checkpoint func(record) error
}

// errNotFinished means that the end came before a batch was processed; its rest comes again with the next run.
var errNotFinished = errors.New("the batch is not finished")

// process returns when every record succeeded, in order. It returns errNotFinished when ctx ends first.
func (p *batchProcessor) process(ctx context.Context, batch []record) error {
	todo := [][]record{batch}
	for failures := 0; len(todo) > 0; {
		if ctx.Err() != nil {
			return errNotFinished
		}
		head := todo[0]
		done, cause := p.attempt(ctx, head)
		if done > 0 {
			failures = 0
			if err := p.checkpoint(head[done-1]); err != nil {
				return err
			}
		}
		todo = todo[1:]
		if cause == nil {
			continue
		}
		failures++
		todo = append(p.afterFailure(ctx, head[done:], cause), todo...)
		if p.host.Wait(ctx, backoff(failures, p.retryMin, p.retryMax)) != nil {
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

// afterFailure returns what is to be tried next: the records, or their halves.
func (p *batchProcessor) afterFailure(ctx context.Context, rest []record, cause error) [][]record {
	log := p.host.Logger.With("function", p.function.Name, "records", len(rest), "first", rest[0].id, "error", cause)
	if whole := (functionError{}); p.bisect && errors.As(cause, &whole) && len(rest) > 1 {
		log.WarnContext(ctx, "batch failed, retrying its halves")
		middle := len(rest) / 2
		return [][]record{rest[:middle], rest[middle:]}
	}
	log.WarnContext(ctx, "batch failed, retrying")
	return [][]record{rest}
}
