package app

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/counter"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/snstopic"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/queue"
)

// NewHandler makes a function's handler, of a form that Lambda takes. It fails
// when the configuration is wrong, so that a fault shows at the start.
type NewHandler[H any] func(context.Context, *Dependencies) (H, error)

// The forms of handlers, by what calls the function.
type (
	// GatewayFunc answers a request of API Gateway.
	GatewayFunc = func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)
	// AuthorizerFunc establishes the principal of a request for API Gateway.
	AuthorizerFunc = func(context.Context, events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error)
	// QueueFunc takes messages of a queue and answers which of them failed.
	QueueFunc = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
	// StreamFunc takes records of the table's stream.
	StreamFunc = func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBTimeWindowEventResponse, error)
	// ScheduleFunc takes the schedule's event, or messages of the index jobs' queue.
	ScheduleFunc = func(context.Context, sweeper.Event) (*events.SQSEventResponse, error)
)

// Functions returns every function by the name of its folder. The portal's shows
// the documentation by render.
func Functions(render Renderer, tools Tools) map[string]NewHandler[any] {
	return map[string]NewHandler[any]{
		"authorizer": untyped(Authorizer),
		"developers": untyped(Developers),
		"webhooks":   untyped(Webhooks(tools)),
		"api":        untyped(API),
		"portal":     untyped(Portal(render)),
		"receipts":   untyped(Receipts),
		"ingest":     untyped(Ingest),
		"dispatcher": untyped(Dispatcher),
		"indexer":    untyped(Indexer),
		"worker":     untyped(Worker),
		"sweeper":    untyped(Sweeper),
	}
}

func untyped[H any](newHandler NewHandler[H]) NewHandler[any] {
	return func(ctx context.Context, d *Dependencies) (any, error) { return newHandler(ctx, d) }
}

// Ingest makes the function that applies what back offices send.
func Ingest(_ context.Context, d *Dependencies) (QueueFunc, error) {
	rejects := queue.NewRejects(d.queue(d.Config.RecordsDLQURL))
	queues := queue.NewRecords(d.queue(d.Config.RecordsQueueURL), d.queue(d.Config.ImportsQueueURL))
	ingester := ingest.New(measuredRecords{d.Table, d.Metrics}, measuredRejects{rejects, d.Metrics}, queues, d.Clock, d.Logger)
	return d.measuredMessages(ingester.Handle), nil
}

// Indexer makes the function that appends changes to the tails of lists and counts
// outcomes, since a stream has few readers. A batch is counted only after all of it
// is appended: otherwise the batch comes again. So the indexer must fail a batch from
// its first record on, and both must recognize changes that they have processed.
func Indexer(_ context.Context, d *Dependencies) (StreamFunc, error) {
	var tails indexer.Storage = d.Table
	decode := indexer.DecodeFor(d.lists(), dynamo.Stream{}, index.NewFieldCache(d.Table, commerce.FieldAge, d.Clock))
	if d.Metrics != nil {
		measured := &measuredTails{Storage: d.Table, to: d.Metrics, clock: d.Clock, newest: map[tailOf]int64{}}
		tails, decode = measured, measured.decode(decode)
	}
	x := indexer.New(tails, decode, d.park(), d.indexJobs(), d.Logger)
	c := counter.New(d.Table, d.deliveries(), d.Clock, d.Logger)
	return measured(d, stream(func(ctx context.Context, batch events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error) {
		response, err := x.Handle(ctx, batch.DynamoDBEvent)
		if err == nil && len(response.BatchItemFailures) == 0 {
			response.BatchItemFailures = c.Handle(ctx, batch)
		}
		return response, err
	}), nil), nil
}

// stream gives a function of the stream the form that Lambda takes of a mapping with
// a tumbling window: the answer must have a state, and the last event of a window no
// records.
func stream(handle func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error)) StreamFunc {
	return func(ctx context.Context, batch events.DynamoDBTimeWindowEvent) (answer events.DynamoDBTimeWindowEventResponse, err error) {
		answer.State, answer.BatchItemFailures = map[string]string{}, []events.DynamoDBBatchItemFailure{}
		if len(batch.Records) == 0 {
			return answer, nil
		}
		response, err := handle(ctx, batch)
		answer.BatchItemFailures = append(answer.BatchItemFailures, response.BatchItemFailures...)
		return answer, err
	}
}

// Dispatcher makes the function that turns changes into deliveries.
func Dispatcher(_ context.Context, d *Dependencies) (StreamFunc, error) {
	dispatch := dispatcher.New(d.Table, d.deliveries(), d.park(), d.Clock, d.Logger)
	if topic := d.Config.EndpointAlertTopicARN; topic != "" {
		dispatch.Topic = snstopic.New(sns.NewFromConfig(d.AWS), topic)
	}
	return measured(d, stream(func(ctx context.Context, batch events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error) {
		return dispatch.Handle(ctx, batch.DynamoDBEvent)
	}), nil), nil
}

// Worker makes the function that delivers.
func Worker(ctx context.Context, d *Dependencies) (QueueFunc, error) {
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	cfg := worker.Config{Clock: d.Clock, Logger: d.Logger, ARNs: d.arns(), MaxAttempts: d.Config.EndpointAttempts}
	store := measuredOutcomes{d.Table, d.Metrics}
	return d.measuredMessages(worker.New(store, d.deliveries(), outbound.New(d.outbound()), secrets, cfg).Handle), nil
}

// Sweeper makes the function that the schedule calls.
func Sweeper(_ context.Context, d *Dependencies) (ScheduleFunc, error) {
	compaction := compactor.New(d.Table, d.lists().All(), d.Clock, d.Logger)
	return d.measuredSchedule(sweeper.New(d.Table, d.deliveries(), sweeper.IndexCompaction{IndexQueue: d.indexJobs(), Compactor: compaction}, d.Clock, d.Logger).Handle), nil
}
