package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/local/eventsource"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/template"
)

// sources drives the functions that the API does not: from the stream, the
// queues and the clock.
type sources struct {
	model     *template.Model
	functions *host
	queues    map[string]provision.Queue
	host      eventsource.Host
	ticks     func(time.Duration) (<-chan time.Time, func())
	dir       string // of the checkpoints
	sqs       *sqs.Client
	release   func(queueURL string) error
	streams   *dynamodbstreams.Client
	streamARN string

	feed    *eventsource.Feed
	run     []func(context.Context) error
	readers []*eventsource.Stream
}

// prepare makes every source that the template declares.
func (s *sources) prepare() error {
	var err error
	s.feed, err = eventsource.NewFeed(s.streams, eventsource.FeedConfig{
		Host: s.host, StreamARN: s.streamARN, PartitionKey: s.model.Table.Key.Partition, TTLAttribute: s.model.Table.TTL,
	})
	if err != nil {
		return err
	}
	for name, f := range s.model.Functions {
		function := s.function(name, f.Timeout)
		for _, source := range f.Queues {
			if err := s.addQueue(function, source); err != nil {
				return err
			}
		}
		for _, source := range f.Streams {
			if err := s.addStream(function, source); err != nil {
				return err
			}
		}
		for _, source := range f.Schedules {
			if err := s.addSchedule(function, source); err != nil {
				return err
			}
		}
	}
	return nil
}

// function is what event sources invoke.
func (s *sources) function(name string, timeout time.Duration) eventsource.Function {
	f := eventsource.Function{Name: name, Timeout: timeout + s.functions.patience, Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
		return s.functions.invoke(ctx, name, payload)
	}}
	if here := s.functions.here; here != nil {
		f.Changes = typed[events.DynamoDBEvent, events.DynamoDBEventResponse](here, name)
		f.Messages = typed[events.SQSEvent, events.SQSEventResponse](here, name)
	}
	if name == recorder {
		f.Invoke, f.Messages = then(f.Invoke, s.feed.Nudge), then(f.Messages, s.feed.Nudge)
	}
	return f
}

// recorder is the function that writes records, for which event sources wait
// at the stream: when it has written, they need not wait for the next poll.
const recorder = "ingest"

// then does something after each call, whatever became of it.
func then[E, A any](call func(context.Context, E) (A, error), after func()) func(context.Context, E) (A, error) {
	if call == nil {
		return nil
	}
	return func(ctx context.Context, event E) (A, error) {
		defer after()
		return call(ctx, event)
	}
}

func (s *sources) addQueue(function eventsource.Function, source template.QueueSource) error {
	cfg := queueConfig(source)
	cfg.MaximumConcurrency = s.functions.concurrency(function.Name, source.MaxConcurrency)
	cfg.Host, cfg.QueueURL, cfg.QueueARN = s.host, s.queues[source.Queue].URL, s.queues[source.Queue].ARN
	queue, err := eventsource.NewQueue(s.sqs, function, cfg)
	if err != nil {
		return err
	}
	if err := s.release(cfg.QueueURL); err != nil {
		return err
	}
	s.run = append(s.run, func(ctx context.Context) error {
		queue.Run(ctx)
		return nil
	})
	return nil
}

// queueConfig says of a mapping what the template says, but for its
// concurrency.
func queueConfig(source template.QueueSource) eventsource.QueueConfig {
	return eventsource.QueueConfig{
		BatchSize: source.BatchSize, MaximumBatchingWindow: source.Window,
		Filters: source.Filters, ReportBatchItemFailures: source.ReportFailures,
	}
}

// concurrency bounds a function's invocations side by side, 0 for no bound.
// Ingest waits for nothing but the table server, which on one machine makes
// one write at a time: more than some only wait for one another, and with full
// messages until their time is up. The jobs of the index, which the sweeper
// does, compute, and leave the machine to requests. The worker waits for
// receivers as well, and some that hang must not hold up the others; when
// hundreds of receivers fail at once, hundreds of invocations would only wait
// for the table.
func concurrency(function string, template int) int {
	const enough, computing, receiving, unbounded = 4, 2, 32, 1000
	if template == 0 {
		template = unbounded
	}
	switch function {
	case "ingest":
		return min(template, enough)
	case "sweeper":
		return min(template, computing)
	case "worker":
		return min(template, receiving)
	}
	return template
}

func (s *sources) addStream(function eventsource.Function, source template.StreamSource) error {
	cfg := streamConfig(source)
	cfg.Lanes = s.functions.lanes(source.ParallelizationFactor)
	cfg.Checkpoints = filepath.Join(s.dir, source.ID+".checkpoint")
	stream, err := s.feed.Stream(function, cfg)
	if err != nil {
		return err
	}
	s.readers = append(s.readers, stream)
	s.run = append(s.run, stream.Run)
	return nil
}

// lanes is how many batches of the stream's single shard may be under way at a
// time, by the hash of the partition key, so that the changes of an item stay
// in order: as many as the mapping says, but no more than keep the table server
// busy, which makes one write at a time. More of them would only be smaller,
// and so cost more reads and messages for each event.
func lanes(factor int) int {
	const enough = 2
	return min(factor, enough)
}

// streamConfig says of a mapping what the template says, but for its
// parallelization.
func streamConfig(source template.StreamSource) eventsource.StreamConfig {
	return eventsource.StreamConfig{
		BatchSize: source.BatchSize, MaximumBatchingWindow: source.Window, Filters: source.Filters,
		ReportBatchItemFailures: source.ReportFailures, BisectBatch: source.Bisect,
		MaximumRetryAttempts: &source.MaxRetries, MaximumRecordAge: &source.MaxAge,
	}
}

func (s *sources) addSchedule(function eventsource.Function, source template.Schedule) error {
	schedule, err := eventsource.NewSchedule(function, eventsource.ScheduleConfig{Host: s.host, Expression: rate(source.Every), Ticks: s.ticks})
	if err != nil {
		return err
	}
	s.run = append(s.run, func(ctx context.Context) error {
		schedule.Run(ctx)
		return nil
	})
	return nil
}

// rate is EventBridge's expression for a schedule, which knows a singular.
func rate(every time.Duration) string {
	if every == time.Minute {
		return "rate(1 minute)"
	}
	return fmt.Sprintf("rate(%d minutes)", int(every/time.Minute))
}

// past is the sequence number that every reader is past, "" while one is
// nowhere yet.
func (s *sources) past() string {
	positions := make([]string, 0, len(s.readers))
	for _, r := range s.readers {
		position := r.Position()
		if position == "" {
			return ""
		}
		positions = append(positions, position)
	}
	return eventsource.Lowest(positions...)
}
