package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// DueShards is the number of partitions that due marks are spread over.
const DueShards = shards

// markDue puts an item under a due mark.
func markDue(it item, id value.ID, at value.Time) {
	it[attrGSI1PK], it[attrGSI1SK] = str(duePartition(shardOf(id))), str(timedSort(at, id))
}

// circuitMark is the due mark of an endpoint's circuit. GSI1 holds only keys:
// the suffix tells the mark from that of the endpoint's deletion.
func circuitMark(at value.Time, endpoint value.ID) string {
	return timedSort(at, endpoint) + circuitSuffix
}

const circuitSuffix = "#CIRCUIT"

// Due reads up to limit due marks of a shard whose time lies before the
// given one, the oldest first, behind the mark after unless it is "". The
// index follows the table within a moment: a mark may already have moved.
func (t *DeliveryStore) Due(ctx context.Context, shard int, after string, before value.Time, limit int) ([]webhook.Due, error) {
	return collect(ctx, t.db, timed(duePartition(shard), behind(after), before.String(), limit), limit, decodeDue)
}

// behind is the sort key that follows the given one, or the first of all when
// there is none: "~" is after and "!" before every character of a sort key.
func behind(sk string) string {
	if sk == "" {
		return "!"
	}
	return sk + "~"
}

func decodeDue(it item) (webhook.Due, error) {
	pk, sk := getString(it, attrPK), getString(it, attrSK)
	d := webhook.Due{Mark: getString(it, attrGSI1SK)}
	parts := strings.Split(pk, "#")
	if len(parts) < 3 || parts[0] != "ORG" {
		return d, fmt.Errorf("a due mark of the unknown item %s %s", pk, sk)
	}
	var err error
	if d.OrganizationID, err = value.ParseID(parts[1]); err != nil {
		return d, fmt.Errorf("a due mark of %s: %w", pk, err)
	}
	text := sk
	switch {
	case parts[2] == deliveryKind:
		d.Kind = webhook.DueDelivery
	case strings.HasPrefix(sk, endpointPrefix):
		d.Kind, text = webhook.DueDeletion, strings.TrimPrefix(sk, endpointPrefix)
		if strings.HasSuffix(d.Mark, circuitSuffix) {
			d.Kind = webhook.DueCircuit
		}
	case strings.HasPrefix(sk, recoveryPrefix):
		endpoint, id, _ := strings.Cut(strings.TrimPrefix(sk, recoveryPrefix), "#")
		d.Kind, text = webhook.DueRecovery, id
		if d.EndpointID, err = value.ParseID(endpoint); err != nil {
			return d, fmt.Errorf("a due mark of %s %s: %w", pk, sk, err)
		}
	default:
		return d, fmt.Errorf("a due mark of the unknown item %s %s", pk, sk)
	}
	if d.ID, err = value.ParseID(text); err != nil {
		return d, fmt.Errorf("a due mark of %s %s: %w", pk, sk, err)
	}
	return d, nil
}

// Postpone moves a due mark to the given time and returns it as it is then;
// nil when it was no longer as it was found. Of a delivery it returns the
// delivery too.
func (t *DeliveryStore) Postpone(ctx context.Context, d webhook.Due, until value.Time) (moved *webhook.Due, delivery *webhook.Delivery, err error) {
	next := d
	next.Mark = timedSort(until, d.ID)
	if d.Kind == webhook.DueCircuit {
		next.Mark = circuitMark(until, d.ID)
	}
	current, done, err := t.updateItem(ctx, "move a due mark", t.update(dueKey(d), "SET GSI1SK = :next", "GSI1SK = :found",
		item{":next": str(next.Mark), ":found": str(d.Mark)}), types.ReturnValueAllNew)
	if err != nil || !done {
		return nil, nil, err
	}
	if d.Kind == webhook.DueDelivery && !t.expired(current) {
		delivery, err = decodeDelivery(current)
	}
	return &next, delivery, err
}

func dueKey(d webhook.Due) key {
	switch d.Kind {
	case webhook.DueRecovery:
		return recoveryKey(d.OrganizationID, d.EndpointID, d.ID)
	case webhook.DueDeletion, webhook.DueCircuit:
		return endpointKey(d.OrganizationID, d.ID)
	default:
		return deliveryKey(d.OrganizationID, d.ID)
	}
}
