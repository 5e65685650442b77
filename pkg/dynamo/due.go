package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// markDue puts an item under a due mark.
func markDue(it item, id value.ID, at value.Time) {
	it[attrGSI1PK], it[attrGSI1SK] = str(duePartition(shardOf(id))), str(timedSort(at, id))
}

// circuitMark is the due mark of an endpoint's circuit. GSI1 holds only keys:
// the suffix distinguishes the mark from that of the endpoint's deletion.
func circuitMark(at value.Time, endpoint value.ID) string {
	return timedSort(at, endpoint) + circuitSuffix
}

const circuitSuffix = "#CIRCUIT"

// Due reads up to limit due marks of a shard whose time lies before the
// given one, the oldest first, behind the mark after unless it is "". The
// index follows the table within a moment: a mark may already have moved.
func (t *Table) Due(ctx context.Context, shard int, after string, before value.Time, limit int) ([]webhook.Due, error) {
	return collect(ctx, t, timed(duePartition(shard), behind(after), before.String(), limit), limit, decodeDue)
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
	at, _, _ := strings.Cut(d.Mark, "#")
	var err, timeErr, endpointErr, idErr error
	d.At, timeErr = value.ParseTime(at)
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
	if err = cmp.Or(err, timeErr, endpointErr, idErr); err != nil {
		return d, fmt.Errorf("a due mark of %s %s: %w", k.pk, k.sk, err)
	}
	return d, nil
}

// Postpone moves a due mark to the given time and returns it as it is then;
// nil when it was no longer as it was found. Of a delivery it returns the
// delivery too.
func (t *Table) Postpone(ctx context.Context, d webhook.Due, until value.Time) (moved *webhook.Due, delivery *webhook.Delivery, err error) {
	next := d
	next.At, next.Mark = until, timedSort(until, d.ID)
	if d.Kind == webhook.DueCircuit {
		next.Mark = circuitMark(until, d.ID)
	}
	current, done, err := t.updateItem(ctx, "move a due mark", t.set(dueKey(d), item{attrGSI1SK: str(next.Mark)},
		when("GSI1SK = :found", item{":found": str(d.Mark)})))
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

// Unsent reads the first limit HELD and FAILED deliveries of the endpoint, created in
// [since, until), the oldest first, behind the cursor unless it is "". A page
// costs up to twice what one of [Table.Held] does.
func (t *Table) Unsent(ctx context.Context, org, endpoint value.ID, since, until value.Time, cursor string, limit int) ([]webhook.UnsentDelivery, error) {
	return t.oldest(ctx, unsentPartitions(endpoint, unsentPrefix, heldPrefix), org, max(since.String(), behind(cursor)), until.String(), limit)
}

// Held reads the first limit deliveries that the endpoint's circuit holds, the oldest
// first, behind the cursor unless it is "". A page of up to 18 costs 8 read
// units, and one of 500 up to 32.
func (t *Table) Held(ctx context.Context, org, endpoint value.ID, cursor string, limit int) ([]webhook.UnsentDelivery, error) {
	return t.oldest(ctx, unsentPartitions(endpoint, heldPrefix), org, behind(cursor), "~", limit)
}

func unsentPartitions(endpoint value.ID, prefixes ...string) (partitions []string) {
	for _, prefix := range prefixes {
		for shard := range Shards {
			partitions = append(partitions, unsentPartition(prefix, endpoint, shard))
		}
	}
	return partitions
}

const (
	maxUnsentReads = 8 // partitions read at a time
	// minShare deliveries fit into the 4 KB that a query costs at least.
	minShare = 16
)

// oldest reads the first limit deliveries of all partitions in the order of their
// cursors. It reads twice a partition's share of the page from each, and whole
// pages only when a partition has more of the first ones than that. A delivery
// that moves meanwhile may be found in two partitions, and is returned once.
func (t *Table) oldest(ctx context.Context, partitions []string, org value.ID, after, before string, limit int) ([]webhook.UnsentDelivery, error) {
	pages := make([][]webhook.UnsentDelivery, len(partitions))
	for share := min(limit, minShare+2*limit/Shards); ; share = limit {
		err := parallel.UntilError(ctx, maxUnsentReads, slices.All(partitions), func(ctx context.Context, i int, pk string) error {
			due, err := collect(ctx, t, timed(pk, after, before, share), share, decodeDue)
			pages[i] = nil
			for _, d := range due {
				if d.OrganizationID == org {
					pages[i] = append(pages[i], webhook.UnsentDelivery{DeliveryID: d.ID, Cursor: d.Mark})
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		end := before // up to here all are found
		for _, page := range pages {
			if len(page) == share {
				end = min(end, page[share-1].Cursor)
			}
		}
		found := slices.DeleteFunc(slices.Concat(pages...), func(u webhook.UnsentDelivery) bool { return u.Cursor > end })
		slices.SortFunc(found, func(a, b webhook.UnsentDelivery) int { return cmp.Compare(a.Cursor, b.Cursor) })
		found = slices.Compact(found)
		if end == before || len(found) >= limit {
			return found[:min(limit, len(found))], nil
		}
	}
}
