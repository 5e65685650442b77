package eventsource

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// StreamClient is the part of *dynamodbstreams.Client that a feed calls.
type StreamClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

const (
	defaultMaxCached  = 8 << 20
	defaultMaxBacklog = 64 << 20

	// minPollPause is the pause after a poll that read a change that a source waits for; it doubles with every poll
	// that does not, up to the configured one.
	minPollPause = 100 * time.Millisecond
	// minPollInterval is the least time between two polls of which the first has read everything: writers nudge more
	// often than polls pay off.
	minPollInterval = 3 * time.Millisecond
)

// FeedConfig names the stream that a feed reads.
type FeedConfig struct {
	Host
	StreamARN string // required
	// PartitionKey names the table's, a text, by whose hash the records are divided among a source's workers; required
	// for sources with more than one worker.
	PartitionKey string
	// TTLAttribute names the table's TTL attribute. Deletions of items that had expired by it get the userIdentity of
	// DynamoDB's own deletions, which the local table's sweep cannot give them.
	TTLAttribute string
	IdlePoll     time.Duration // longest pause between polls of a quiet stream, default 250 ms, as Lambda's
}

// A Feed reads the stream of a table once for all sources of it, from the single shard that the local table server has.
// It keeps the newest changes, up to a number of bytes. The sources that have seen them all wait while one of them reads
// the next; a source that is further behind reads by itself. None may alter a change.
type Feed struct {
	client StreamClient
	cfg    FeedConfig
	format recordFormat

	maxCached  int // about how many bytes of the newest changes are kept
	maxBacklog int // about how many are read and not yet processed by a source's workers

	reading chan struct{} // holds one: the source that reads
	nudged  chan struct{} // holds one

	mu      sync.Mutex
	filters []filter // of the sources that wait for every change
	begun   bool
	base    string // the position before the changes
	changes []*change
	weight  int           // of the changes
	end     string        // the position behind the changes
	more    chan struct{} // closed when changes were added

	// These belong to the source that reads.
	reader    reader
	idlePolls int // polls since the last that read a change that a source waits for
	polled    time.Time
	due       time.Time
}

// NewFeed checks the configuration.
func NewFeed(client StreamClient, cfg FeedConfig) (*Feed, error) {
	if cfg.StreamARN == "" {
		return nil, errors.New("a feed needs a StreamARN")
	}
	cfg.Host = cfg.Host.withDefaults()
	cfg.IdlePoll = cmp.Or(cfg.IdlePoll, 250*time.Millisecond)
	f := &Feed{
		client: client, cfg: cfg, maxCached: defaultMaxCached, maxBacklog: defaultMaxBacklog,
		format:  recordFormat{streamARN: cfg.StreamARN, region: cfg.Region, ttlAttribute: cfg.TTLAttribute, partitionKey: cfg.PartitionKey},
		reading: make(chan struct{}, 1), nudged: make(chan struct{}, 1), more: make(chan struct{}),
	}
	f.reader = f.newReader()
	return f, nil
}

// Nudge makes the feed poll at once instead of after its pause. It never blocks.
func (f *Feed) Nudge() {
	select {
	case f.nudged <- struct{}{}:
	default:
	}
}

// await makes changes that pass the filter count as waited for.
func (f *Feed) await(wanted filter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = append(f.filters, wanted)
}

// awaits reports whether a source waits for the change, rather than for a full batch.
func (f *Feed) awaits(c *change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.filters, func(wanted filter) bool { return wanted.passes(c.from.NewImage) })
}

// after returns the changes behind a position, and waits until there are some. ok is false when they have expired.
func (f *Feed) after(ctx context.Context, at string) (changes []*change, ok bool, err error) {
	for {
		changes, more, ok := f.look(at)
		if !ok || len(changes) > 0 {
			return changes, ok, nil
		}
		select {
		case <-ctx.Done():
			return nil, true, ctx.Err()
		case <-more:
		case f.reading <- struct{}{}:
			err := f.read(ctx, at)
			<-f.reading
			if err != nil {
				return nil, true, err
			}
		}
	}
}

// look returns the changes behind a position, and a channel that is closed when there are more. The feed begins at the
// first position that is asked for.
func (f *Feed) look(at string) (changes []*change, more <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begun {
		f.begun, f.base, f.end = true, at, at
	}
	if compareSequences(at, f.base) < 0 {
		return nil, nil, false
	}
	from, found := slices.BinarySearchFunc(f.changes, at, func(c *change, at string) int { return compareSequences(c.id, at) })
	if found {
		from++
	}
	return f.changes[from:len(f.changes):len(f.changes)], f.more, true
}

// read polls once, when a poll is due, unless another source has read beyond the position meanwhile.
func (f *Feed) read(ctx context.Context, at string) error {
	f.mu.Lock()
	end := f.end
	f.mu.Unlock()
	if compareSequences(end, at) > 0 {
		return nil
	}
	if err := f.awaitPoll(ctx); err != nil {
		return err
	}
	changes, full, err := f.reader.read(ctx, end)
	if err != nil {
		return err
	}
	f.polled = time.Now()
	f.idlePolls++
	if slices.ContainsFunc(changes, f.awaits) {
		f.idlePolls = 1
	}
	f.due = f.polled.Add(backoff(f.idlePolls, minPollPause, f.cfg.IdlePoll))
	if full {
		f.due = f.polled
	}
	f.add(changes)
	return nil
}

// awaitPoll returns when a poll is due, by the clock or because of a nudge.
func (f *Feed) awaitPoll(ctx context.Context) error {
	nudged := f.nudged
	timer := time.NewTimer(time.Until(f.due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-nudged:
			nudged = nil // one is enough
			timer.Reset(min(time.Until(f.polled.Add(minPollInterval)), time.Until(f.due)))
		}
	}
}

// add keeps changes, and drops the oldest of too many bytes, but none of the new ones.
func (f *Feed) add(changes []*change) {
	if len(changes) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		f.weight += c.weight
	}
	f.changes, f.end = append(f.changes, changes...), changes[len(changes)-1].id
	drop := 0
	for ; f.weight > f.maxCached && drop < len(f.changes)-len(changes); drop++ {
		f.weight -= f.changes[drop].weight
		f.base = f.changes[drop].id
	}
	f.changes = f.changes[drop:] // others may still read the dropped ones
	close(f.more)
	f.more = make(chan struct{})
}
