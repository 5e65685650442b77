package dynamo

import (
	"context"
	"maps"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// A row of stock is a record and, while the record lacks adjustments, a ledger: it has
// their sum and the revision that they come after. A ledger of an earlier revision means
// nothing any more. Each adjustment is an item, too, so that it counts once.
const (
	attrAhead    = "ahead" // ten-thousandths
	attrAdjusted = "adj"
	attrLowAt    = "low"
)

// maxAdjustTries is how often a transaction of adjustments is tried that the table
// throttles or does not answer.
const maxAdjustTries = 3

// StockRow reads a row of stock and which of the adjustments have counted, strongly
// consistent.
func (t *Table) StockRow(ctx context.Context, org, id value.ID, adjustments []commerce.Change) (*commerce.StockRow, error) {
	record, ledger := recordKey(org, string(commerce.KindStock), id), ledgerKey(org, id)
	names := map[key]string{}
	for _, c := range adjustments {
		if name := commerce.AdjustmentID(c); name != "" {
			names[adjustmentKey(org, id, name)] = name
		}
	}
	items, err := t.batchGet(ctx, slices.AppendSeq([]key{record, ledger}, maps.Keys(names)), true)
	if err != nil {
		return nil, err
	}
	row, found := &commerce.StockRow{Counted: map[string]bool{}}, map[key]item{}
	for _, it := range t.live(items) {
		found[keyOf(it)] = it
		if name, counted := names[keyOf(it)]; counted {
			row.Counted[name] = true
		}
	}
	if row.Record, err = decodeRecord(found[record]); err != nil {
		return nil, err
	}
	readLedger(row, found[ledger])
	return row, nil
}

// readLedger takes the ledger of the row's record, if it is of this revision.
func readLedger(row *commerce.StockRow, it item) {
	row.Token = getUnsigned(it, attrToken)
	if row.Record != nil && getTime(it, attrRevision) == row.Record.Revision {
		row.Ahead = value.Amount(getNumber(it, attrAhead))
	}
}

// AdjustStock stores what adjustments made of a row, all of it or nothing. It is not
// done when another writer was faster.
func (t *Table) AdjustStock(ctx context.Context, org, id value.ID, row *commerce.StockRow, next *commerce.Adjusted) (done bool, err error) {
	k, unchanged := ledgerKey(org, id), ifLast(attrToken, row.Token)
	var writes []write
	if next.Record != nil {
		writes = append(writes, t.put(encodeRecord(next.Record), t.ifBasedOn(row.Record)), t.remove(k, unchanged))
	} else {
		it := k.newItem(typeLedger)
		it[attrAhead], it[attrRevision], it[attrToken] = num(int64(next.Ahead)), num(row.Record.Revision), num(row.Token+1)
		writes = append(writes, t.check(recordKey(org, string(commerce.KindStock), id), t.ifBasedOn(row.Record)), t.put(it, unchanged))
	}
	for _, name := range next.Counted {
		it := adjustmentKey(org, id, name).newItem(typeAdjustment)
		it[attrExpires] = expiry(value.TimeOf(t.now()).Add(commerce.AdjustmentAge))
		writes = append(writes, t.put(it, t.ifAbsentOrExpired()))
	}
	refused, err := t.transactTries(ctx, "adjust stock", maxAdjustTries, writes)
	return err == nil && len(refused) == 0, err
}
