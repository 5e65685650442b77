package eventsource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// errNotFinished means that the end came before a batch was processed; its rest comes again with the next run.
var errNotFinished = errors.New("the batch is not finished")

// process invokes the function with a batch until every record succeeded, in order, and moves the checkpoint behind those
// that did. It returns errNotFinished when ctx ends first.
func (w *streamWorker) process(ctx context.Context, batch []record) error {
	todo := [][]record{batch}
	for failures := 0; len(todo) > 0; {
		if ctx.Err() != nil {
			return errNotFinished
		}
		head := todo[0]
		done, cause := w.attempt(ctx, head)
		if done > 0 {
			failures = 0
			if err := w.source.progress.set(w.number, head[done-1].id, 0); err != nil {
				return err
			}
		}
		todo = todo[1:]
		if cause == nil {
			continue
		}
		failures++
		todo = append(w.afterFailure(ctx, head[done:], cause), todo...)
		if pause.For(ctx, backoff(failures)) != nil {
			return errNotFinished
		}
	}
	return nil
}

// functionError is the failure of an invocation as a whole, after which a batch may be bisected.
type functionError struct{ error }

func (e functionError) Unwrap() error { return e.error }

// attempt invokes the function once. It returns how many records from the first succeeded, and why the next did not.
func (w *streamWorker) attempt(ctx context.Context, records []record) (done int, cause error) {
	failed, err := w.source.function.handle(ctx, w.source.feed.cfg.Host, records, w.source.cfg.ReportBatchItemFailures)
	if err != nil {
		return 0, functionError{err}
	}
	if len(failed) == 0 {
		return len(records), nil
	}
	lowest := slices.IndexFunc(records, func(r record) bool { return slices.Contains(failed, r.id) })
	return lowest, fmt.Errorf("the function %s reports %d of %d records as failed, the first is %s", w.source.function.Name, len(failed), len(records), records[lowest].id)
}

// afterFailure returns the batches to try next: the records, or their halves.
func (w *streamWorker) afterFailure(ctx context.Context, rest []record, cause error) [][]record {
	log := w.source.feed.cfg.Logger.With("function", w.source.function.Name, "records", len(rest), "first", rest[0].id, "error", cause)
	if whole := (functionError{}); w.source.cfg.BisectBatch && errors.As(cause, &whole) && len(rest) > 1 {
		log.WarnContext(ctx, "batch failed, retrying its halves")
		middle := len(rest) / 2
		return [][]record{rest[:middle], rest[middle:]}
	}
	log.WarnContext(ctx, "batch failed, retrying")
	return [][]record{rest}
}
