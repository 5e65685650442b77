package app

import (
	"context"

	"github.com/commerce-integration/service/pkg/dispatcher"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/lists/compactor"
	"github.com/commerce-integration/service/pkg/lists/indexer"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/worker"
)

// Ingest makes the function that applies what back offices send.
func Ingest(_ context.Context, base *Dependencies) (any, error) {
	rejects := sqsqueue.NewRejects(base.queue(base.Config.RecordsDLQURL))
	queues := sqsqueue.NewRecords(base.queue(base.Config.RecordsQueueURL), base.queue(base.Config.ImportsQueueURL))
	return ingest.New(base.Table, rejects, queues, base.Clock, base.Logger).Handle, nil
}

// Indexer makes the function that appends changes to the tails of lists.
func Indexer(_ context.Context, base *Dependencies) (any, error) {
	park := sqsqueue.NewPark(base.queue(base.Config.ParkQueueURL))
	return indexer.New(base.Table, indexer.DecodeFor(base.lists()), park, base.indexJobs(), base.Logger).Handle, nil
}

// Dispatcher makes the function that turns changes into deliveries.
func Dispatcher(_ context.Context, base *Dependencies) (any, error) {
	park := sqsqueue.NewPark(base.queue(base.Config.ParkQueueURL))
	return dispatcher.New(base.Table, base.deliveries(), park, base.Clock, base.Logger).Handle, nil
}

// Worker makes the function that delivers.
func Worker(ctx context.Context, base *Dependencies) (any, error) {
	secrets, err := base.secrets(ctx)
	if err != nil {
		return nil, err
	}
	cfg := worker.Config{Clock: base.Clock, Logger: base.Logger}
	return worker.New(base.Table, base.deliveries(), outbound.New(base.outbound()), secrets, cfg).Handle, nil
}

// Sweeper makes the function that the schedule calls.
func Sweeper(_ context.Context, base *Dependencies) (any, error) {
	maintainer := compactor.New(base.Table, base.lists().All(), base.Clock, base.Logger)
	return sweeper.New(base.Table, base.deliveries(), sweeper.IndexCompaction{IndexQueue: base.indexJobs(), Maintainer: maintainer}, sweeper.Config{
		Clock: base.Clock, Logger: base.Logger,
	}).Handle, nil
}

// indexJobs is the queue that starts the jobs of the index.
func (b *Dependencies) indexJobs() sqsqueue.IndexJobs {
	return sqsqueue.NewIndexJobs(b.queue(b.Config.IndexJobsQueueURL))
}

// outbound says where webhooks may go, to the worker that sends them and to
// the operations that take their urls.
func (b *Dependencies) outbound() outbound.Config {
	return outbound.Config{
		AllowPrivateTargets: b.Config.AllowPrivateTargets, RefusedPorts: b.Config.RefusedPorts, Clock: b.Clock,
	}
}

// deliveries are the queues that feed the worker.
func (b *Dependencies) deliveries() sqsqueue.Deliveries {
	return sqsqueue.NewDeliveries(b.queue(b.Config.DeliveriesQueueURL), b.queue(b.Config.SlowDeliveriesQueueURL))
}
