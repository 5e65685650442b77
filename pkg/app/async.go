package app

import (
	"context"

	"github.com/commerce-integration/service/pkg/delivery"
	"github.com/commerce-integration/service/pkg/dispatch"
	"github.com/commerce-integration/service/pkg/indexing"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/sweep"
)

// Ingest makes the function that applies what back offices send.
func Ingest(_ context.Context, base *Base) (any, error) {
	rejects := queue.NewRejects(base.queue(base.Config.RecordsDLQURL))
	queues := queue.NewRecords(base.queue(base.Config.RecordsQueueURL), base.queue(base.Config.ImportsQueueURL))
	return ingest.New(base.Table, rejects, queues, base.Clock, base.Logger).Handle, nil
}

// Indexer makes the function that appends changes to the tails of lists.
func Indexer(_ context.Context, base *Base) (any, error) {
	park := queue.NewPark(base.queue(base.Config.ParkQueueURL))
	return indexing.NewWriter(base.Table, base.lists().Decode, park, base.indexJobs(), base.Logger).Handle, nil
}

// Dispatcher makes the function that turns changes into deliveries.
func Dispatcher(_ context.Context, base *Base) (any, error) {
	park := queue.NewPark(base.queue(base.Config.ParkQueueURL))
	return dispatch.New(base.Table, base.deliveries(), park, base.Clock, base.Logger).Handle, nil
}

// Worker makes the function that delivers.
func Worker(ctx context.Context, base *Base) (any, error) {
	secrets, err := base.secrets(ctx)
	if err != nil {
		return nil, err
	}
	cfg := delivery.Config{Clock: base.Clock, Logger: base.Logger}
	return delivery.New(base.Table, base.deliveries(), outbound.New(base.outbound()), secrets, cfg).Handle, nil
}

// Sweeper makes the function that the schedule calls.
func Sweeper(_ context.Context, base *Base) (any, error) {
	maintainer := indexing.NewMaintainer(base.Table, base.lists().All(), base.Clock, base.Logger)
	return sweep.New(base.Table, base.deliveries(), sweep.Index{IndexQueue: base.indexJobs(), Maintainer: maintainer}, sweep.Config{
		Clock: base.Clock, Logger: base.Logger,
	}).Handle, nil
}

// indexJobs is the queue that starts the jobs of the index.
func (b *Base) indexJobs() queue.IndexJobs {
	return queue.NewIndexJobs(b.queue(b.Config.IndexJobsQueueURL))
}

// outbound says where webhooks may go, to the worker that sends them and to
// the operations that take their urls.
func (b *Base) outbound() outbound.Config {
	return outbound.Config{
		AllowPrivateTargets: b.Config.AllowPrivateTargets, RefusedPorts: b.Config.RefusedPorts, Clock: b.Clock,
	}
}

// deliveries are the queues that feed the worker.
func (b *Base) deliveries() queue.Deliveries {
	return queue.NewDeliveries(b.queue(b.Config.DeliveriesQueueURL), b.queue(b.Config.SlowDeliveriesQueueURL))
}
