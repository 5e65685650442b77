package runner

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/commerce-integration/service/pkg/local/eventsource"
	"github.com/commerce-integration/service/pkg/local/template"
)

// sources invoke the functions that the API does not: from the stream, the queues and the clock.
type sources struct {
	run       *run
	functions *host
	host      eventsource.Host
	feed      *eventsource.Feed
	loops     []func(context.Context) error // one for each source
	readers   []*eventsource.Stream
}

// newSources makes every source that the template declares.
func (r *run) newSources(functions *host) (*sources, error) {
	s := &sources{run: r, functions: functions, host: eventsource.Host{Region: region, Grace: grace, Logger: r.cfg.Logger}}
	client := dynamodbstreams.NewFromConfig(r.servers.aws, func(o *dynamodbstreams.Options) { o.BaseEndpoint = &r.servers.tableURL })
	var err error
	s.feed, err = eventsource.NewFeed(client, eventsource.FeedConfig{
		Host: s.host, StreamARN: r.streamARN, PartitionKey: r.model.Table.Key.Partition, TTLAttribute: r.model.Table.TTL,
	})
	if err != nil {
		return nil, err
	}
	for name, f := range r.model.Functions {
		function := s.function(name, f.Timeout)
		for _, source := range f.Queues {
			if err := s.addQueue(function, source); err != nil {
				return nil, err
			}
		}
		for _, source := range f.Streams {
			if err := s.addStream(function, source); err != nil {
				return nil, err
			}
		}
		for _, source := range f.Schedules {
			if err := s.addSchedule(function, source); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// function is what event sources invoke.
func (s *sources) function(name string, timeout time.Duration) eventsource.Function {
	f := eventsource.Function{Name: name, Timeout: timeout + s.functions.startTime, Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
		return s.functions.invoke(ctx, name, payload)
	}}
	if here := s.functions.here; here != nil {
		f.Changes = typed[events.DynamoDBEvent, events.DynamoDBEventResponse](here, name)
		f.Messages = typed[events.SQSEvent, events.SQSEventResponse](here, name)
	}
	if name == "ingest" {
		// It writes records, for which the stream's sources wait: they need not wait for the next poll as well.
		f.Invoke, f.Messages = then(f.Invoke, s.feed.Nudge), then(f.Messages, s.feed.Nudge)
	}
	return f
}

// then calls another function after each call, whatever its outcome.
func then[E, A any](call func(context.Context, E) (A, error), after func()) func(context.Context, E) (A, error) {
	if call == nil {
		return nil
	}
	return func(ctx context.Context, event E) (A, error) {
		defer after()
		return call(ctx, event)
	}
}

// add keeps a loop that does not fail.
func (s *sources) add(loop func(context.Context)) {
	s.loops = append(s.loops, func(ctx context.Context) error {
		loop(ctx)
		return nil
	})
}

func (s *sources) addQueue(function eventsource.Function, source template.QueueSource) error {
	queue := s.run.queues[source.Queue]
	reader, err := eventsource.NewQueue(s.run.servers.messages(), function, eventsource.QueueConfig{
		Host: s.host, QueueURL: queue.URL, QueueARN: queue.ARN,
		BatchSize: source.BatchSize, ReportBatchItemFailures: true,
		MaximumConcurrency: s.functions.concurrency(source.Queue, source.MaxConcurrency),
	})
	if err != nil {
		return err
	}
	s.add(reader.Run)
	return s.run.servers.release(queue.URL)
}

// concurrency bounds a queue's concurrent invocations. Ingest waits only for the table server, which makes one write at a
// time: more invocations would not write more, but be before all others, and of an import each has hundreds of records.
// The sweeper computes, on cores that requests need. The worker also waits for receivers, and a few that hang must not
// hold up the others; but when hundreds fail at once, hundreds of invocations would only wait for the table.
func concurrency(queue string, template int) int {
	bounds := map[string]int{"RecordsQueue": 2, "ImportsQueue": 1, "IndexJobsQueue": 2, "DeliveriesQueue": 32, "SlowDeliveriesQueue": 32}
	const unbounded = 1000
	return min(cmp.Or(template, unbounded), cmp.Or(bounds[queue], unbounded))
}

// pollInterval is how often Lambda asks a shard of a stream for changes. The indexer's gather for as long here, too; the
// dispatcher gets its own at once, since people wait for their first webhook.
const pollInterval = 250 * time.Millisecond

func (s *sources) addStream(function eventsource.Function, source template.StreamSource) error {
	var window time.Duration
	if function.Name == "indexer" {
		window = pollInterval
	}
	stream, err := s.feed.Stream(function, eventsource.StreamConfig{
		Checkpoints: filepath.Join(s.run.folder.path("checkpoints"), source.ID+".checkpoint"),
		BatchSize:   source.BatchSize, MaximumBatchingWindow: window, Filters: source.Filters,
		ReportBatchItemFailures: true, BisectBatch: true,
		ShardWorkers: s.functions.lanes(source.ParallelizationFactor),
	})
	if err != nil {
		return err
	}
	s.readers = append(s.readers, stream)
	s.loops = append(s.loops, stream.Run)
	return nil
}

// lanes is how many batches of the stream's single shard may be under way at a time, by the hash of the partition key, so
// that the changes of an item stay in order. Two keep the table server busy, which makes one write at a time. More lanes
// would have smaller batches, which cost more reads and messages for each event.
func lanes(factor int) int { return min(factor, 2) }

func (s *sources) addSchedule(function eventsource.Function, source template.Schedule) error {
	schedule, err := eventsource.NewSchedule(function, eventsource.ScheduleConfig{Host: s.host, Every: source.Every, Ticks: s.run.cfg.Ticks})
	if err == nil {
		s.add(schedule.Run)
	}
	return err
}

// past is the sequence number that every reader is past, "" while one has no position yet.
func (s *sources) past() string {
	positions := make([]string, len(s.readers))
	for i, reader := range s.readers {
		positions[i] = reader.Position()
	}
	return eventsource.Lowest(positions...)
}
