package dynamo

import (
	"context"
	"fmt"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// RecordRef names a record.
type RecordRef struct {
	OrganizationID value.ID
	Kind           commerce.Kind
	ID             value.ID
}

func (r RecordRef) key() key { return recordKey(r.OrganizationID, string(r.Kind), r.ID) }

// Found is the answer for one reference.
type Found struct {
	Stored *commerce.Stored // a tombstone too; nil when there is none
	Err    error            // the record could not be read
}

// ReadRecords reads records of any kind and organization, tombstones included,
// strongly consistent, a hundred a call. The references must be distinct. It
// answers in their order, for each on its own: one that cannot be read leaves
// the others alone.
func (t *RecordStore) ReadRecords(ctx context.Context, refs []RecordRef) []Found {
	found := make([]Found, len(refs))
	for start := 0; start < len(refs); start += maxBatchGet {
		end := min(start+maxBatchGet, len(refs))
		t.readRecords(ctx, refs[start:end], found[start:end])
	}
	return found
}

// readRecords reads what one call takes.
func (t *RecordStore) readRecords(ctx context.Context, refs []RecordRef, found []Found) {
	keys := make([]key, len(refs))
	at := make(map[key]int, len(refs))
	for i, r := range refs {
		keys[i] = r.key()
		at[keys[i]] = i
	}
	items, err := t.batchGetLive(ctx, keys)
	if err != nil {
		for i := range found {
			found[i].Err = err
		}
		return
	}
	for _, it := range items {
		i := at[keyOf(it)]
		found[i].Stored, found[i].Err = decodeRecord(refs[i].OrganizationID, it)
	}
}

// CreateRecords stores records of any kind and organization that were not
// found, in batches, and answers in their order: nil for one that is stored,
// [fault.ErrChanged] for one whose key holds something else. They must be
// distinct. Each succeeds or fails on its own, as by [RecordStore.PutRecord]
// without a previous record; batching only saves calls. The batches run one
// after another: several at a time would slow the table down for other
// writers, and hardly be done sooner.
func (t *RecordStore) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	items, names, statements := make([]insertion, len(records)), recordAttributes(), map[int]string{}
	left := make([]int, len(records))
	for i, s := range records {
		items[i], left[i] = t.insertion(encodeRecord(s), names, statements), i
	}
	taken, errs := make([]bool, len(records)), make([]error, len(records))
	for len(left) > 0 {
		n := batchLength(items, left)
		failed, err := t.insertBatch(ctx, items, left[:n], taken)
		for _, i := range failed {
			if fault.Is(err, fault.Unavailable) {
				errs[i] = fmt.Errorf("create %s %s: %w", records[i].Kind, records[i].ID, err)
				continue
			}
			// The table has refused one of the batch as wrong. What became of
			// the others is unknown, so each is put alone.
			taken[i] = true
		}
		for _, i := range left[:n] {
			if taken[i] {
				// A single put knows the record that an earlier try of its own
				// has written, and replaces a tombstone that has expired.
				errs[i] = t.PutRecord(ctx, nil, records[i])
			}
		}
		left = left[n:]
	}
	return errs
}

// recordAttributes are all that a record may have, the key first.
func recordAttributes() []string {
	return []string{
		attrPK, attrSK, attrType, attrKind, attrRevision, attrVersion,
		attrArrived, attrSilent, attrDeleted, attrExpires, attrDoc, attrSites,
	}
}
