package eventsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	// firstPause is the pause after the first empty poll; it doubles up to the configured one.
	firstPause = 2 * time.Millisecond
	// pageTarget is about how many bytes of events one poll should bring. DynamoDB bounds its pages itself, the local
	// table server does not: a thousand large records would be hundreds of megabytes.
	pageTarget = 4 << 20
	// pageMost is DynamoDB's own bound of the records in a page.
	pageMost = 1000
)

// A shard is read in order by one goroutine.
type shard struct {
	id       string
	stream   *Stream
	delivery delivery
	nudged   chan struct{}

	iterator *string   // nil: to be fetched from the checkpoint on
	waiting  []record  // passed the filter, not yet delivered
	since    time.Time // when the first of them was read
	scanned  string    // the last sequence number read through iterator
	limit    int32     // how many records the next poll asks for
}

func newShard(s *Stream, id string) *shard {
	one := &shard{id: id, stream: s, nudged: make(chan struct{}, 1), limit: pageMost / 10}
	one.delivery = delivery{
		function: s.function, host: s.cfg.Host, partial: s.cfg.ReportBatchItemFailures, bisect: s.cfg.BisectBatch,
		maxAttempts: -1, retryMin: s.cfg.RetryMin, retryMax: s.cfg.RetryMax,
		past: func(r record) error { return s.progress.set(id, r.id) },
	}
	if s.cfg.MaximumRetryAttempts != nil {
		one.delivery.maxAttempts = *s.cfg.MaximumRetryAttempts
	}
	if s.cfg.MaximumRecordAge != nil {
		one.delivery.maxAge = *s.cfg.MaximumRecordAge
	}
	return one
}

// read reads the shard until it is closed and all of it delivered. Its error is errNotFinished when ctx ended first, else
// one of the checkpoints.
func (s *shard) read(ctx context.Context) error {
	log := s.stream.cfg.Logger.With("function", s.stream.function.Name, "shard", s.id)
	for empty, failures := 0, 0; ctx.Err() == nil; {
		read, closed, err := s.poll(ctx)
		if err != nil {
			failures++
			if ctx.Err() == nil {
				log.WarnContext(ctx, "stream not read, trying again", "error", err)
			}
			s.iterator, s.waiting, s.scanned = nil, nil, ""
			_ = s.stream.cfg.Wait(ctx, backoff(failures, s.stream.cfg.RetryMin, s.stream.cfg.RetryMax)) // the loop sees why it ended
			continue
		}
		failures = 0
		if err := s.deliverReady(ctx, closed); err != nil {
			return err
		}
		if closed {
			return s.stream.progress.set(s.id, shardEnd)
		}
		if empty++; read > 0 {
			empty = 0
			continue
		}
		s.pause(ctx, backoff(empty, firstPause, s.stream.cfg.IdlePoll))
	}
	return errNotFinished
}

// poll reads once and takes in what passes the filter. It returns how many records were read and whether they were the
// shard's last.
func (s *shard) poll(ctx context.Context) (read int, closed bool, err error) {
	if s.iterator == nil {
		if err := s.begin(ctx); err != nil {
			return 0, false, err
		}
	}
	page, err := s.stream.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: s.iterator, Limit: aws.Int32(s.limit)})
	if err != nil {
		return 0, false, fmt.Errorf("reading shard %s: %w", s.id, err)
	}
	size := 0
	for _, from := range page.Records {
		converted, passes, err := s.stream.format.convert(from)
		if err != nil {
			return 0, false, err
		}
		s.scanned = converted.id
		size += len(converted.event)
		if !passes {
			continue
		}
		if len(s.waiting) == 0 {
			s.since = s.stream.cfg.Now()
		}
		s.waiting = append(s.waiting, converted)
	}
	s.iterator, s.limit = page.NextShardIterator, nextLimit(s.limit, size, len(page.Records))
	return len(page.Records), page.NextShardIterator == nil, nil
}

// nextLimit adapts the page to the size of the records in the last one, never more than doubling it.
func nextLimit(limit int32, size, records int) int32 {
	if records == 0 {
		return limit
	}
	fit := pageTarget / max(1, size/records)
	return int32(min(fit, 2*int(limit), pageMost))
}

// begin fetches an iterator from the checkpoint on. Where that was trimmed away, reading goes on at the horizon.
func (s *shard) begin(ctx context.Context) error {
	at := s.stream.progress.at(s.id)
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(s.stream.cfg.StreamARN), ShardId: aws.String(s.id), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if at != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, aws.String(at)
	}
	out, err := s.stream.client.GetShardIterator(ctx, in)
	if trimmed := (*types.TrimmedDataAccessException)(nil); errors.As(err, &trimmed) {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeTrimHorizon, nil
		out, err = s.stream.client.GetShardIterator(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("beginning to read shard %s after %q: %w", s.id, at, err)
	}
	s.iterator = out.ShardIterator
	return nil
}

// deliverReady delivers the batches that are full or whose window is over, all of them when the shard is closed. When
// nothing waits, what was filtered out is past as well.
func (s *shard) deliverReady(ctx context.Context, closed bool) error {
	for len(s.waiting) > 0 {
		n := fitting(s.waiting, s.stream.cfg.BatchSize)
		full := n < len(s.waiting) || n == s.stream.cfg.BatchSize
		if !full && !closed && s.stream.cfg.Now().Before(s.since.Add(s.stream.cfg.MaximumBatchingWindow)) {
			return nil
		}
		if err := s.delivery.deliver(ctx, s.waiting[:n]); err != nil {
			return err
		}
		s.waiting = s.waiting[n:]
		s.since = s.stream.cfg.Now()
	}
	s.waiting = nil
	if s.scanned == "" {
		return nil
	}
	return s.stream.progress.set(s.id, s.scanned)
}

// pause waits until the next poll is due: after d, when nudged, or when the window of a waiting batch is over.
func (s *shard) pause(ctx context.Context, d time.Duration) {
	if len(s.waiting) > 0 {
		d = min(d, max(0, s.since.Add(s.stream.cfg.MaximumBatchingWindow).Sub(s.stream.cfg.Now())))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.nudged:
	case <-timer.C:
	}
}
