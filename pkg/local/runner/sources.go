package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

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
	functions *functions
	queues    map[string]provision.Queue
	host      eventsource.Host
	dir       string // of the checkpoints
	sqs       *sqs.Client
	release   func(queueURL string) error
	streams   *dynamodbstreams.Client
	streamARN string

	run     []func(context.Context) error
	readers []*eventsource.Stream
}

// prepare makes every source that the template declares.
func (s *sources) prepare() error {
	for name, f := range s.model.Functions {
		function := eventsource.Function{Name: name, Timeout: f.Timeout, Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
			return s.functions.invoke(ctx, name, payload)
		}}
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

// localConcurrency bounds invocations side by side on one machine, whatever
// the template allows in AWS.
const localConcurrency = 16

func (s *sources) addQueue(function eventsource.Function, source template.QueueSource) error {
	queue, err := eventsource.NewQueue(s.sqs, function, eventsource.QueueConfig{
		Host: s.host, QueueURL: s.queues[source.Queue].URL, QueueARN: s.queues[source.Queue].ARN,
		BatchSize: source.BatchSize, MaximumBatchingWindow: source.Window,
		MaximumConcurrency: min(max(source.MaxConcurrency, 2), localConcurrency),
		Filters:            source.Filters, ReportBatchItemFailures: source.ReportFailures,
	})
	if err != nil {
		return err
	}
	if err := s.release(s.queues[source.Queue].URL); err != nil {
		return err
	}
	s.run = append(s.run, func(ctx context.Context) error {
		queue.Run(ctx)
		return nil
	})
	return nil
}

func (s *sources) addStream(function eventsource.Function, source template.StreamSource) error {
	stream, err := eventsource.NewStream(s.streams, function, eventsource.StreamConfig{
		Host: s.host, StreamARN: s.streamARN, Checkpoints: filepath.Join(s.dir, source.ID+".checkpoint"),
		BatchSize: source.BatchSize, MaximumBatchingWindow: source.Window, Filters: source.Filters,
		ReportBatchItemFailures: source.ReportFailures, BisectBatch: source.Bisect,
		MaximumRetryAttempts: &source.MaxRetries, MaximumRecordAge: &source.MaxAge, TTLAttribute: s.model.Table.TTL,
	})
	if err != nil {
		return err
	}
	s.readers = append(s.readers, stream)
	s.run = append(s.run, stream.Run)
	return nil
}

func (s *sources) addSchedule(function eventsource.Function, source template.Schedule) error {
	minutes := int(source.Every / time.Minute)
	expression := fmt.Sprintf("rate(%d minutes)", minutes)
	if minutes == 1 {
		expression = "rate(1 minute)"
	}
	schedule, err := eventsource.NewSchedule(function, eventsource.ScheduleConfig{Host: s.host, Expression: expression})
	if err != nil {
		return err
	}
	s.run = append(s.run, func(ctx context.Context) error {
		schedule.Run(ctx)
		return nil
	})
	return nil
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
