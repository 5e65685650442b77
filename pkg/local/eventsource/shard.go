package eventsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
)

const (
	// firstPause is the pause after the first empty poll; it doubles up to the configured one.
	firstPause = 2 * time.Millisecond
	// pageTarget is about how many bytes of events one poll should bring. DynamoDB bounds its pages itself, the local
	// table server does not: a thousand large records would be hundreds of megabytes.
	pageTarget = 4 << 20
	// pageMost is DynamoDB's own bound of the records in a page.
	pageMost = 1000
	// aheadMost is about how many bytes of events of a shard are read ahead of its lanes. A lane that is so far behind
	// holds up the others.
	aheadMost = 64 << 20
)

// A shard is read by one goroutine and delivered by its lanes: one, or as many as it is split into.
type shard struct {
	id     string
	stream *Stream
	lanes  []*lane
	nudged chan struct{}
	ahead  *ahead

	iterator *string // nil: to be fetched for what comes after scanned
	scanned  string  // the last sequence number read, "" before the first
	limit    int32   // how many records the next poll asks for
}

func newShard(s *Stream, id string) *shard {
	one := &shard{id: id, stream: s, nudged: make(chan struct{}, 1), limit: pageMost / 10, ahead: newAhead(aheadMost)}
	for i, at := range s.progress.begin(id, s.cfg.Shards) {
		one.lanes = append(one.lanes, newLane(s, laneKey(id, i, s.cfg.Shards), at, one.ahead))
	}
	return one
}

// read reads the shard until it is closed and all of it delivered. Its error is errNotFinished when ctx ended first, else
// one of the checkpoints.
func (s *shard) read(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range s.lanes {
		group.Go(func() error { return l.run(ctx) })
	}
	group.Go(func() error { return s.follow(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	return s.stream.progress.end(s.id)
}

// follow feeds the lanes until the shard is closed, or ctx ends.
func (s *shard) follow(ctx context.Context) error {
	log := s.stream.cfg.Logger.With("function", s.stream.function.Name, "shard", s.id)
	for empty, failures := 0, 0; ctx.Err() == nil; {
		read, closed, err := s.poll(ctx)
		if err != nil {
			failures++
			if ctx.Err() == nil {
				log.WarnContext(ctx, "stream not read, trying again", "error", err)
			}
			s.iterator = nil
			_ = s.stream.cfg.Wait(ctx, backoff(failures, s.stream.cfg.RetryMin, s.stream.cfg.RetryMax)) // the loop sees why it ended
			continue
		}
		failures = 0
		if closed {
			return nil
		}
		if empty++; read > 0 {
			empty = 0
			s.ahead.await(ctx)
			continue
		}
		s.pause(ctx, backoff(empty, firstPause, s.stream.cfg.IdlePoll))
	}
	return errNotFinished
}

// poll reads once and gives the lanes what passes the filter. It returns how many records were read and whether they were
// the shard's last.
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
	size, parts := 0, make([][]record, len(s.lanes))
	scanned := s.scanned
	for _, from := range page.Records {
		converted, passes, err := s.stream.format.convert(from)
		if err != nil {
			return 0, false, err
		}
		scanned = converted.id
		size += len(converted.event)
		if passes {
			part := s.stream.format.part(from, len(s.lanes))
			parts[part] = append(parts[part], converted)
		}
	}
	closed = page.NextShardIterator == nil
	for i, l := range s.lanes {
		l.feed(parts[i], scanned, closed)
	}
	s.scanned, s.iterator, s.limit = scanned, page.NextShardIterator, nextLimit(s.limit, size, len(page.Records))
	return len(page.Records), closed, nil
}

// nextLimit adapts the page to the size of the records in the last one, never more than doubling it.
func nextLimit(limit int32, size, records int) int32 {
	if records == 0 {
		return limit
	}
	fit := pageTarget / max(1, size/records)
	return int32(min(fit, 2*int(limit), pageMost))
}

// begin fetches an iterator for what comes after what was read, which at first is what the hindmost lane is past. Where
// that was trimmed away, reading goes on at the horizon.
func (s *shard) begin(ctx context.Context) error {
	at := s.scanned
	if at == "" {
		at = s.position()
	}
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

// position is what all lanes are past, "" while one is nowhere.
func (s *shard) position() string {
	positions := make([]string, len(s.lanes))
	for i, l := range s.lanes {
		positions[i] = s.stream.progress.at(l.key)
	}
	return Lowest(positions...)
}

// pause waits until the next poll is due: after d, or when nudged.
func (s *shard) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.nudged:
	case <-timer.C:
	}
}
