package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Unsent reads up to limit HELD and FAILED deliveries of the endpoint, created in
// [since, until), the oldest first, behind the cursor unless it is "".
func (t *DeliveryStore) Unsent(ctx context.Context, org, endpoint value.ID, since, until value.Time, cursor string, limit int) ([]webhook.UnsentDelivery, error) {
	after := since.String()
	if cursor != "" {
		after = behind(cursor)
	}
	unsent, err := t.unsentIn(ctx, unsentPartition(endpoint), org, after, until.String(), limit)
	if err != nil {
		return nil, err
	}
	held, err := t.unsentIn(ctx, heldPartition(endpoint), org, after, until.String(), limit)
	if err != nil {
		return nil, err
	}
	return mergeUnsent(unsent, held, limit), nil
}

// Held reads up to limit deliveries that the endpoint's circuit holds, the oldest
// first, behind the cursor unless it is "".
func (t *DeliveryStore) Held(ctx context.Context, org, endpoint value.ID, cursor string, limit int) ([]webhook.UnsentDelivery, error) {
	return t.unsentIn(ctx, heldPartition(endpoint), org, behind(cursor), "~", limit)
}

// unsentIn reads deliveries of a partition of GSI1, which follows the table
// within a moment: a delivery may have been sent meanwhile.
func (t *DeliveryStore) unsentIn(ctx context.Context, pk string, org value.ID, after, before string, limit int) ([]webhook.UnsentDelivery, error) {
	due, err := collect(ctx, t.db, timed(pk, after, before, limit), limit, decodeDue)
	var found []webhook.UnsentDelivery
	for _, d := range due {
		if d.OrganizationID == org {
			found = append(found, webhook.UnsentDelivery{OrganizationID: org, DeliveryID: d.ID, Cursor: d.Mark})
		}
	}
	return found, err
}

// mergeUnsent returns the first of both lists, which are in the order of
// their cursors. A delivery that moves from one to the other between the two
// reads may be in both.
func mergeUnsent(a, b []webhook.UnsentDelivery, limit int) []webhook.UnsentDelivery {
	var merged []webhook.UnsentDelivery
	for len(merged) < limit && len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].Cursor < a[0].Cursor {
			from = &b
		}
		if n := len(merged); n == 0 || merged[n-1] != (*from)[0] {
			merged = append(merged, (*from)[0])
		}
		*from = (*from)[1:]
	}
	return merged
}
