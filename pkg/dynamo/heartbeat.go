package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Beat writes the heartbeat that the stream brings to its consumers, who do
// nothing with it: a consumer that has no heartbeat for minutes stands still.
// It costs one write unit.
func (t *Table) Beat(ctx context.Context, now value.Time) error {
	it := heartbeatKey().newItem(typeHeartbeat)
	it[attrHeartbeatAt] = num(now)
	_, _, err := t.putItem(ctx, "write the heartbeat", t.put(it, always))
	return err
}

// attrHeartbeatAt changes with every heartbeat: the stream leaves a write out
// that changes nothing.
const attrHeartbeatAt = "at"
