package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/receipt"
	"github.com/commerce-integration/service/pkg/value"
)

// CreateReceipt stores a receipt, whose id is new.
func (t *ReceiptStore) CreateReceipt(ctx context.Context, s *receipt.Stored) error {
	it, err := encodeReceipt(s, s.Receipt.CreatedAt)
	if err != nil {
		return err
	}
	_, _, err = t.putItem(ctx, "create a receipt", t.put(it, ifAbsent, nil))
	return err
}

// Receipt reads one receipt, strongly consistent; nil when the organization has
// none with the id.
func (t *ReceiptStore) Receipt(ctx context.Context, org, id value.ID) (*receipt.Stored, error) {
	return read(ctx, t.db, receiptKey(org, id), decodeDoc[receipt.Stored])
}

// CompleteReceipt stores a completed receipt, unless it was completed before or
// has been removed since.
func (t *ReceiptStore) CompleteReceipt(ctx context.Context, s *receipt.Stored) error {
	it, err := encodeReceipt(s, max(*s.Receipt.CompletedAt, s.Receipt.CreatedAt+1))
	if err != nil {
		return err
	}
	_, _, err = t.putItem(ctx, "complete a receipt", t.putRevision(it, s.Receipt.CreatedAt))
	return err
}

func encodeReceipt(s *receipt.Stored, revision value.Time) (it item, err error) {
	it = receiptKey(s.OrganizationID, s.Receipt.ID).newItem(typeReceipt)
	if it[attrDoc], err = encodeDoc(s); err != nil {
		return nil, err
	}
	it[attrRevision], it[attrExpires] = num(revision), expiry(s.Receipt.ExpiresAt)
	return it, nil
}
