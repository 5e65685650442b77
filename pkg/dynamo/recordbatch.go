package dynamo

import (
	"context"
	"fmt"
	"slices"

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
	keys, at := make([]key, len(refs)), make(map[key]int, len(refs))
	for i, r := range refs {
		keys[i] = recordKey(r.OrganizationID, string(r.Kind), r.ID)
		at[keys[i]] = i
	}
	for some := range slices.Chunk(keys, maxBatchGet) {
		items, err := t.batchGetLive(ctx, some)
		if err != nil {
			for _, k := range some {
				found[at[k]].Err = err
			}
		}
		for _, it := range items {
			one := &found[at[keyOf(it)]]
			one.Stored, one.Err = decodeRecord(it)
		}
	}
	return found
}

// CreateRecords stores records of any kind and organization that were not
// found, in batches, and answers in their order: nil for one that is stored,
// [fault.ErrChanged] for one whose key holds something else. They must be
// distinct. Each succeeds or fails on its own, as by [RecordStore.PutRecord]
// without a previous record; batching only saves calls. The batches run one
// after another: several at a time would slow the table down for other
// writers, and hardly be done sooner.
func (t *RecordStore) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	items, left := make([]insertion, len(records)), make([]int, len(records))
	for i, s := range records {
		items[i], left[i] = t.insertion(encodeRecord(s)), i
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
