package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// Found is what the table holds of a record.
type Found struct {
	Stored *commerce.Stored // a tombstone too; nil when there is none
	Err    error            // why that cannot be told
}

// ReadRecords reads records of any kind and organization, tombstones included,
// strongly consistent, a hundred a call. The references must be distinct. It
// answers in their order, for each on its own: one that cannot be read leaves
// the others alone.
func (t *RecordStore) ReadRecords(ctx context.Context, refs []RecordRef) []Found {
	found := make([]Found, len(refs))
	for start := 0; start < len(refs); start += batchGetMax {
		end := min(start+batchGetMax, len(refs))
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
	items, err := t.batchGet(ctx, keys)
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
// [fault.ErrChanged] for one in whose place the table holds something else. They
// must be distinct. Each stands or fails on its own, as by [RecordStore.PutRecord]
// with no previous record: the batch spares calls only. Batches follow one
// another, so that many records leave the table to others; several at a time
// make others wait for as many, and are hardly done sooner.
func (t *RecordStore) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	c := creation{
		table: t, records: records, items: t.recordInsertions(records),
		there: make([]bool, len(records)), errs: make([]error, len(records)),
	}
	left := make([]int, len(records))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		n := batchLength(c.items, left)
		c.insert(ctx, left[:n])
		c.settle(ctx, left[:n])
		left = left[n:]
	}
	return c.errs
}

// creation is the state of records that are being created, by position.
type creation struct {
	table   *RecordStore
	records []*commerce.Stored
	items   []insertion
	there   []bool // the key is taken, by whatever
	errs    []error
}

// insert creates what is not there, and tries again what the table throttled.
func (c *creation) insert(ctx context.Context, batch []int) {
	for attempt := 1; ; attempt++ {
		again, err := c.table.tryInsert(ctx, c.items, batch, c.there)
		switch {
		case err == nil:
			return
		case len(again) == 0 && fault.Is(err, fault.Unavailable):
			c.fail(batch, err)
			return
		case len(again) == 0:
			c.doubt(batch)
			return
		case attempt == insertAttempts:
			c.fail(again, fault.Busy(err))
			return
		}
		if waitErr := backOff(ctx, attempt); waitErr != nil {
			c.fail(again, fault.Busy(err))
			return
		}
		batch = again
	}
}

func (c *creation) fail(batch []int, err error) {
	for _, at := range batch {
		c.errs[at] = fmt.Errorf("create %s %s: %w", c.records[at].Kind, c.records[at].ID, err)
	}
}

// doubt leaves a batch to single puts: the table has refused one of it as
// wrong, and what became of the others is not known.
func (c *creation) doubt(batch []int) {
	for _, at := range batch {
		c.there[at] = true
	}
}

// settle puts those whose keys were taken. A put alone knows the record that
// its own try before has written, and writes over a tombstone that has expired
// and was not removed yet.
func (c *creation) settle(ctx context.Context, batch []int) {
	for _, at := range batch {
		if c.there[at] {
			c.errs[at] = c.table.PutRecord(ctx, nil, c.records[at])
		}
	}
}

// Bytes of a record's item, about: of each site, and of all but its doc and
// sites.
const (
	siteBytes      = 40
	recordOverhead = 256
)

// recordInsertions are the records' items in their order.
func (t *RecordStore) recordInsertions(records []*commerce.Stored) []insertion {
	items := make([]insertion, len(records))
	statements := map[int]string{} // by the attributes: few are different
	for i, s := range records {
		it := encodeRecord(s)
		names := make([]string, 0, len(it))
		values := make([]types.AttributeValue, 0, len(it))
		has := 0
		for n, name := range recordAttributes() {
			if v, ok := it[name]; ok {
				names, values, has = append(names, name), append(values, v), has|1<<n
			}
		}
		if statements[has] == "" {
			statements[has] = t.insertStatement(names...)
		}
		items[i] = insertion{
			key: keyOf(it), statement: statements[has], values: values,
			size: recordOverhead + len(s.Doc) + siteBytes*len(s.SiteIDs),
		}
	}
	return items
}

// recordAttributes are all that a record may have, the key first.
func recordAttributes() [12]string {
	return [...]string{
		attrPK, attrSK, attrType, attrKind, attrRevision, attrVersion,
		attrArrived, attrSilent, attrDeleted, attrExpires, attrDoc, attrSites,
	}
}
