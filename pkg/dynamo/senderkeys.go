package dynamo

import (
	"context"
	"errors"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/sender"
)

// SenderKeys reads the keys of an organization's senders, strongly consistent;
// nil when it has none.
func (t *RecordStore) SenderKeys(ctx context.Context, org value.ID) (*sender.Keys, error) {
	return read(ctx, t.db, senderKeysKey(org), decodeDoc[sender.Keys])
}

// PutSenderKeys stores what change makes of the organization's keys, which are
// nil when it has none. Change may be called again, with fresher keys.
func PutSenderKeys(ctx context.Context, t *Table, org value.ID, change func(*sender.Keys) *sender.Keys) error {
	return changing(ctx, "sender keys", func() (bool, error) {
		stored, err := t.get(ctx, senderKeysKey(org))
		if err != nil {
			return false, err
		}
		keys, err := decodeDoc[sender.Keys](stored)
		if err != nil {
			return false, err
		}
		next := change(keys)
		if next.OrganizationID != org {
			return false, errors.New("put sender keys: they are of another organization")
		}
		it := senderKeysKey(org).newItem(typeSenderKeys)
		if it[attrDoc], err = encodeDoc(next); err != nil {
			return false, err
		}
		w := t.put(it, ifAbsent, nil)
		if stored != nil {
			w = t.put(it, "doc = :read", item{":read": stored[attrDoc]})
		}
		_, done, err := t.putItem(ctx, "put sender keys", w)
		return done, err
	})
}

// RemoveSenderKeys removes the organization's keys, and reports whether there
// were any.
func RemoveSenderKeys(ctx context.Context, t *Table, org value.ID) (bool, error) {
	_, done, err := t.removeItem(ctx, "remove sender keys", t.remove(senderKeysKey(org), ifExists, nil))
	return done, err
}
