package app

import (
	"context"

	"github.com/commerce-integration/service/pkg/indexing"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/queue"
)

// Ingest makes the function that applies what back offices send.
func Ingest(_ context.Context, base *Base) (any, error) {
	rejects := queue.NewRejects(base.queue(base.Config.RecordsDLQURL))
	return ingest.New(base.Table, rejects, base.Clock, base.Logger).Handle, nil
}

// Indexer makes the function that logs changes of lists.
func Indexer(_ context.Context, base *Base) (any, error) {
	park := queue.NewPark(base.queue(base.Config.ParkQueueURL))
	return indexing.NewWriter(base.Table, indexing.Decode, park, base.Logger).Handle, nil
}
