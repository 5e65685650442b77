package dynamo

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
)

// CreateReceipt stores a receipt, unless there is one with its id.
func (t *Table) CreateReceipt(ctx context.Context, s *receipt.Stored) error {
	_, _, err := t.putItem(ctx, "create a receipt", t.put(encodeReceipt(s, s.Receipt.CreatedAt), ifAbsent))
	return err
}

// Receipt reads one receipt, strongly consistent; nil when the organization has
// none with the id.
func (t *Table) Receipt(ctx context.Context, org, id value.ID) (*receipt.Stored, error) {
	return read(ctx, t, receiptKey(org, id), decodeDoc[receipt.Stored])
}

// Receipts reads an organization's receipts, the latest first, eventually
// consistent: at most limit of those before an id, or of all when that is zero.
// next is the id before which the following ones are; zero at the end. A page may
// hold fewer than limit, even none, before the end.
func (t *Table) Receipts(ctx context.Context, org, before value.ID, limit int) (found []*receipt.Stored, next value.ID, err error) {
	pages, ends := make([][]*receipt.Stored, Shards), make([]value.ID, Shards)
	err = parallel.UntilError(ctx, Shards, slices.All(ends), func(ctx context.Context, shard int, _ value.ID) (err error) {
		pages[shard], ends[shard], err = t.latestReceipts(ctx, org, shard, before, limit)
		return err
	})
	if err != nil {
		return nil, next, err
	}
	// Each shard was read down to its end: receipts older than the latest of
	// these ends may be missing.
	next = slices.MaxFunc(ends, value.ID.Compare)
	for _, r := range slices.Concat(pages...) {
		if r.Receipt.ID.Compare(next) >= 0 {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *receipt.Stored) int { return b.Receipt.ID.Compare(a.Receipt.ID) })
	if len(found) > limit {
		found, next = found[:limit], found[limit-1].Receipt.ID
	}
	return found, next, nil
}

// latestReceipts reads one page of a shard. It is larger than the shard's part of
// the limit, so that it rarely ends before those of the other Shards. end is the
// id down to which it was read, zero when it was read to its end.
func (t *Table) latestReceipts(ctx context.Context, org value.ID, shard int, before value.ID, limit int) (found []*receipt.Stored, end value.ID, err error) {
	in := partition(recordPartition(org, receiptKind, shard), "")
	in.ScanIndexForward, in.ConsistentRead = aws.Bool(false), nil
	in.Limit = aws.Int32(int32(8 + limit/8)) //nolint:gosec // bounded
	if !before.IsZero() {
		in.KeyConditionExpression = aws.String("PK = :pk AND SK < :before")
		in.ExpressionAttributeValues[":before"] = str(before.String())
	}
	found, last, err := page(ctx, t, in, decodeDoc[receipt.Stored])
	if err == nil && last != "" {
		end, err = value.ParseID(last)
	}
	return found, end, err
}

// CompleteReceipt stores a completed receipt, unless it was completed before or
// has been removed since.
func (t *Table) CompleteReceipt(ctx context.Context, s *receipt.Stored) error {
	it := encodeReceipt(s, max(*s.Receipt.CompletedAt, s.Receipt.CreatedAt+1))
	_, _, err := t.putItem(ctx, "complete a receipt", t.put(it, ifRevision(s.Receipt.CreatedAt)))
	return err
}

func encodeReceipt(s *receipt.Stored, revision value.Time) item {
	it := docItem(receiptKey(s.OrganizationID, s.Receipt.ID), typeReceipt, s)
	it[attrRevision], it[attrExpires] = num(revision), expiry(s.Receipt.ExpiresAt)
	return it
}
