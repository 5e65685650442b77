package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/value"
)

// workerOrder makes a child the worker alone, before servers of the bench.
// Its answer is a workerRound of nothing, and then one for each order, which
// is a number of deliveries.
type workerOrder struct {
	Table       string           `json:"table"` // URL
	Queues      string           `json:"queues"`
	TableName   string           `json:"tableName"`
	ServiceKey  []byte           `json:"serviceKey"`
	Batches     []jsontext.Value `json:"batches"`     // events as Lambda gives them
	Deliveries  int              `json:"deliveries"`  // in each of them
	Invocations int              `json:"invocations"` // side by side
}

// workerRound is what deliveries came to.
type workerRound struct {
	Deliveries  int    `json:"deliveries"`
	TookNs      int64  `json:"tookNs"`
	ProcessorNs int64  `json:"processorNs"` // time of the processor
	Mallocs     uint64 `json:"mallocs"`
	Bytes       uint64 `json:"bytes"`
}

// The queues of the worker, which are servers of the bench whatever the path.
const (
	deliveriesPath = "/000000000000/DeliveriesQueue"
	deliveriesARN  = "arn:aws:sqs:us-east-1:000000000000:DeliveriesQueue"
	slowPath       = "/000000000000/SlowDeliveriesQueue"
)

// work makes deliveries as it is told.
func (o *workerOrder) work(ctx context.Context, orders *jsontext.Decoder, out io.Writer, logger *slog.Logger) error {
	base := app.NewDependencies(app.Config{
		TableName: o.TableName, DeliveriesQueueURL: o.Queues + deliveriesPath, SlowDeliveriesQueueURL: o.Queues + slowPath,
		ServiceKey: o.ServiceKey, AllowPrivateTargets: true,
	}, runner.AWSConfig(), logger, app.Endpoints{DynamoDB: o.Table, SQS: o.Queues})
	handler, err := app.Worker(ctx, base)
	if err != nil {
		return fmt.Errorf("make the worker: %w", err)
	}
	for answer := (workerRound{}); ; {
		if err := json.MarshalWrite(out, answer); err != nil {
			return err
		}
		var deliveries int
		if err := json.UnmarshalDecode(orders, &deliveries); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what to do: %w", err)
		}
		if answer, err = o.round(ctx, handler, deliveries); err != nil {
			return err
		}
	}
}

// round lets invocations make deliveries, and tells what they used.
func (o *workerOrder) round(ctx context.Context, handler any, deliveries int) (workerRound, error) {
	batches := int64((deliveries + o.Deliveries - 1) / o.Deliveries)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	runtime.GC() // what was before is not charged to the round
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, started := ownProcessor(), time.Now()
	for range o.Invocations {
		// Each has a buffer of its own for answers, as an instance has.
		function := lambda.NewHandler(handler)
		group.Go(func() error {
			for n := next.Add(1); n <= batches; n = next.Add(1) {
				if err := o.invoke(ctx, function, o.Batches[n%int64(len(o.Batches))]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	round := workerRound{Deliveries: int(batches) * o.Deliveries, TookNs: time.Since(started).Nanoseconds(), ProcessorNs: (ownProcessor() - used).Nanoseconds()}
	runtime.ReadMemStats(&after)
	round.Mallocs, round.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return round, err
}

// invocationLimit is the worker's timeout.
const invocationLimit = time.Minute

// invoke gives the worker a batch, all of which has to succeed.
func (o *workerOrder) invoke(ctx context.Context, function lambda.Handler, batch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, invocationLimit)
	defer cancel()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: value.NewRandomID().String()})
	answer, err := function.Invoke(ctx, batch)
	if err != nil {
		return fmt.Errorf("invoke the worker: %w", err)
	}
	var failed events.SQSEventResponse
	if err := json.Unmarshal(answer, &failed); err != nil {
		return fmt.Errorf("invoke the worker: it answered %.200s: %w", answer, err)
	}
	if n := len(failed.BatchItemFailures); n > 0 || !strings.HasPrefix(string(answer), "{") {
		return fmt.Errorf("invoke the worker: %d of %d deliveries failed", n, o.Deliveries)
	}
	return nil
}
