package dynamo

import (
	"cmp"
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
	k := keyOf(it)
	d, text := webhook.Due{Mark: getString(it, attrGSI1SK)}, k.sk
	var err, endpointErr, idErr error
	d.OrganizationID, err = organizationOf(k.pk)
	switch {
	case strings.Contains(k.pk, "#"+deliveryKind+"#"):
		d.Kind = webhook.DueDelivery
	case strings.HasPrefix(k.sk, endpointPrefix):
		d.Kind, text = webhook.DueDeletion, strings.TrimPrefix(k.sk, endpointPrefix)
		if strings.HasSuffix(d.Mark, circuitSuffix) {
			d.Kind = webhook.DueCircuit
		}
	case strings.HasPrefix(k.sk, recoveryPrefix):
		endpoint, id, _ := strings.Cut(strings.TrimPrefix(k.sk, recoveryPrefix), "#")
		d.Kind, text = webhook.DueRecovery, id
		d.EndpointID, endpointErr = value.ParseID(endpoint)
	default:
		return d, fmt.Errorf("a due mark of the unknown item %s %s", k.pk, k.sk)
	}
	d.ID, idErr = value.ParseID(text)
	if err = cmp.Or(err, endpointErr, idErr); err != nil {
		return d, fmt.Errorf("a due mark of %s %s: %w", k.pk, k.sk, err)
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
