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
	loops     []func(context.Context) error
}

// newSources makes every source that the template declares.
func (r *run) newSources(functions *host) (*sources, error) {
	client := dynamodbstreams.NewFromConfig(r.servers.aws, func(o *dynamodbstreams.Options) { o.BaseEndpoint = &r.servers.tableURL })
	s := &sources{run: r, functions: functions, host: eventsource.Host{Region: region, Grace: grace, Logger: r.cfg.Logger}}
	s.feed = eventsource.NewFeed(client, eventsource.FeedConfig{
		Host: s.host, StreamARN: r.streamARN, PartitionKey: r.model.Table.PartitionKey(), TTLAttribute: r.model.Table.TTL,
	})
	s.loops = append(s.loops, s.feed.Run)
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
			s.add(eventsource.NewSchedule(function, eventsource.ScheduleConfig{Host: s.host, Every: source.Every}).Run)
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
		f.Changes = typed[events.DynamoDBTimeWindowEvent, events.DynamoDBTimeWindowEventResponse](here, name)
		f.Messages = typed[events.SQSEvent, events.SQSEventResponse](here, name)
	}
	if name == "ingest" {
		f.After = s.feed.Nudge // it writes records, which should not wait for the next poll
	}
	return f
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
	s.add(eventsource.NewQueue(s.run.servers.messages(), function, eventsource.QueueConfig{
		Host: s.host, QueueURL: queue.URL, QueueARN: queue.ARN,
		BatchSize: source.BatchSize, ReportBatchItemFailures: true,
		MaximumConcurrency: s.functions.concurrency(source.Queue, source.MaxConcurrency),
	}).Run)
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

// gatherTime is for how long the indexer's changes gather, as long as Lambda pauses between polls of a shard. The
// dispatcher gets its own at once, since people wait for their first webhook.
const gatherTime = 250 * time.Millisecond

func (s *sources) addStream(function eventsource.Function, source template.StreamSource) error {
	var window time.Duration
	if function.Name == "indexer" {
		window = gatherTime
	}
	return s.feed.Add(function, eventsource.StreamConfig{
		Checkpoints: filepath.Join(s.run.folder.path("checkpoints"), source.ID+".checkpoint"),
		BatchSize:   source.BatchSize, MaximumBatchingWindow: window, Filters: source.Filters,
		ReportBatchItemFailures: true, BisectBatch: true,
		ShardWorkers: s.functions.lanes(source.ParallelizationFactor),
	})
}

// lanes is how many batches of the stream's single shard may be under way at a time, by the hash of the partition key, so
// that the changes of an item stay in order. Two keep the table server busy, which makes one write at a time. More lanes
// would have smaller batches, which cost more reads and messages for each event.
func lanes(factor int) int { return min(factor, 2) }
