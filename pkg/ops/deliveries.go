package ops

import (
	"context"
	"fmt"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/webhook"
)

// deliveriesPage is how many deliveries are read at a time.
const deliveriesPage = 1000

// EachDelivery hands every delivery of the organization to each, shard by shard.
func EachDelivery(ctx context.Context, table *dynamo.Table, org value.ID, each func(*webhook.Delivery) error) error {
	for shard := range dynamo.Shards {
		for after, more := "", true; more; more = after != "" {
			page, next, err := table.DeliveriesPage(ctx, org, shard, after, deliveriesPage)
			if err != nil {
				return fmt.Errorf("read the deliveries of an organization: %w", err)
			}
			for _, d := range page {
				if err := each(d); err != nil {
					return err
				}
			}
			after = next
		}
	}
	return nil
}
