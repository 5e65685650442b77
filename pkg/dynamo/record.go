package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Attributes of a record.
const (
	attrKind     = "k"
	attrRevision = "rev"
	attrVersion  = "ver"
	attrArrived  = "arr"
	attrSites    = "sites"
	attrRef      = "ref"
	attrDeleted  = "del"
	attrSilent   = "silent"
)

// Record reads one record, strongly consistent; nil when there is none or it
// was deleted.
func (t *Table) Record(ctx context.Context, org value.ID, kind commerce.Kind, id value.ID) (*commerce.Stored, error) {
	s, err := read(ctx, t, recordKey(org, string(kind), id), decodeRecord)
	if s != nil && s.Deleted {
		return nil, nil
	}
	return s, err
}

// Records reads records of one kind, tombstones included, by id, strongly
// consistent. What is absent is not in the answer.
func (t *Table) Records(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error) {
	return lookup[*commerce.Stored](ctx, t, ids, true, func(id value.ID) key { return recordKey(org, string(kind), id) })
}

// RecordsSince is Records for half of the read units: it reads eventually
// consistent, and again, strongly consistent, only records absent or older
// than its least revision in that answer.
func (t *Table) RecordsSince(
	ctx context.Context, org value.ID, kind commerce.Kind, least map[value.ID]value.Time,
) (map[value.ID]*commerce.Stored, error) {
	ids := slices.Collect(maps.Keys(least))
	found, err := lookup[*commerce.Stored](ctx, t, ids, false, func(id value.ID) key { return recordKey(org, string(kind), id) })
	if err != nil {
		return nil, err
	}
	var behind []value.ID
	for id, revision := range least {
		if s := found[id]; s == nil || s.Revision < revision {
			behind = append(behind, id)
			delete(found, id)
		}
	}
	current, err := t.Records(ctx, org, kind, behind)
	maps.Copy(found, current)
	return found, err
}

// minNear is the number of records from which on it takes less to query the shards
// than to read by key.
const minNear = 32 * Shards

// nearQueries is how many queries NearRecords makes at a time.
const nearQueries = 5

// NearRecords is Records for many ids in ascending order that are near to one
// another, as in a walk. It queries the shards, for a read unit for each 4 KB of
// all that is between the ids, where Records takes one at least for each record.
// What it does not find so is not in the answer, and has to be read by Records.
//
// The shards are alike. So the first one shows whether the others are worth it, which
// it then reads several at a time: not where more than a fifth of what it reads is
// between the ids, where a query ends at its 1 MB, and where all shards together would
// have more than maxBytes.
func (t *Table) NearRecords(
	ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID, maxBytes int,
) (map[value.ID]*commerce.Stored, error) {
	if len(ids) < minNear {
		return nil, nil
	}
	var byShard [Shards][]value.ID
	for _, id := range ids {
		byShard[shardOf(id)] = append(byShard[shardOf(id)], id)
	}
	found, size := make(map[value.ID]*commerce.Stored, len(ids)), 0
	var mu sync.Mutex
	read := func(ctx context.Context, shard int) (whole bool, err error) {
		ids := byShard[shard]
		if len(ids) == 0 {
			return true, nil
		}
		in := between(recordPartition(org, string(kind), shard), ids[0].String(), ids[len(ids)-1].String())
		in.Limit = aws.Int32(int32(len(ids) + len(ids)/4)) //nolint:gosec // a page of ids
		records, next, err := page(ctx, t, in, decodeRecord)
		mu.Lock()
		defer mu.Unlock()
		for _, s := range records {
			found[s.ID], size = s, size+len(s.Doc)
		}
		return next == "", err
	}
	if whole, err := read(ctx, 0); err != nil || !whole || size*Shards > maxBytes {
		return found, err
	}
	return found, parallel.UntilError(ctx, nearQueries, slices.All(byShard[1:]), func(ctx context.Context, i int, _ []value.ID) error {
		_, err := read(ctx, i+1)
		return err
	})
}

// Changed is the [fault.ErrChanged] of a put, with the record that the table holds.
type Changed struct {
	Current *commerce.Stored // a tombstone too; nil when there is none
}

func (*Changed) Error() string { return fault.ErrChanged.Error() }

func (*Changed) Unwrap() error { return fault.ErrChanged }

// PutRecord replaces previous, which is nil when there was none, by next. It
// fails with [Changed] when the table holds something else. A write that met its
// own earlier try, which the SDK repeats when a connection breaks after the
// answer, has succeeded.
func (t *Table) PutRecord(ctx context.Context, previous, next *commerce.Stored) error {
	it := encodeRecord(next)
	current, done, err := t.putItem(ctx, "put a record", t.put(it, t.ifBasedOn(previous)))
	if err != nil {
		return fmt.Errorf("%s %s: %w", next.Kind, next.ID, err)
	}
	if done || sameRecord(current, it) {
		return nil
	}
	if t.expired(current) {
		current = nil
	}
	changed, err := decodeRecord(current)
	if err != nil {
		return err
	}
	return &Changed{changed}
}

// ifBasedOn is the condition that the stored record is the previous one, nil when there
// was none.
func (t *Table) ifBasedOn(previous *commerce.Stored) condition {
	if previous == nil {
		return t.ifAbsentOrExpired()
	}
	ifVersion := when("attribute_not_exists(ver)", nil)
	if previous.Version != nil {
		ifVersion = ifEqual(attrVersion, *previous.Version)
	}
	return ifRevision(previous.Revision).and(ifVersion)
}

func sameRecord(a, b item) bool {
	return getTime(a, attrRevision) == getTime(b, attrRevision) && getNumber(a, attrVersion) == getNumber(b, attrVersion) &&
		getString(a, attrDoc) == getString(b, attrDoc) && getBool(a, attrDeleted) == getBool(b, attrDeleted)
}

// RecordsPage reads one page of a shard of the organization's records of the
// kind, tombstones included, in the order of their ids, strongly consistent.
// from is "" at the start, then the next that the page before gave; next is
// "" at the end. A page holds at most limit records, and fewer, even none,
// where it would pass 1 MB or holds expired tombstones.
func (t *Table) RecordsPage(ctx context.Context, org value.ID, kind commerce.Kind, shard int, from string, limit int) (records []*commerce.Stored, next string, err error) {
	return page(ctx, t, after(recordPartition(org, string(kind), shard), from, limit), decodeRecord)
}

func encodeRecord(s *commerce.Stored) item {
	it := recordKey(s.OrganizationID, string(s.Kind), s.ID).newItem(typeRecord)
	it[attrKind], it[attrRevision] = str(string(s.Kind)), num(s.Revision)
	if s.Version != nil {
		it[attrVersion] = num(*s.Version)
	}
	if s.Silent {
		it[attrSilent] = boolean(true)
	}
	if s.Arrived != 0 {
		it[attrArrived] = num(s.Arrived)
	}
	if s.Adjusted {
		it[attrAdjusted] = boolean(true)
	}
	if s.LowAt != nil {
		it[attrLowAt] = num(int64(*s.LowAt))
	}
	if at, deleted := s.ExpiresAt(); deleted {
		it[attrDeleted] = boolean(true)
		it[attrExpires] = expiry(at)
		return it
	}
	it[attrDoc] = str(string(s.Doc))
	if s.ExternalRef != "" {
		it[attrRef] = str(s.ExternalRef)
	}
	if len(s.SiteIDs) > 0 {
		sites := make([]types.AttributeValue, len(s.SiteIDs))
		for i, id := range s.SiteIDs {
			sites[i] = str(id.String())
		}
		it[attrSites] = &types.AttributeValueMemberL{Value: sites}
	}
	return it
}

// decodeRecord returns nil for an absent item.
func decodeRecord(it item) (*commerce.Stored, error) {
	if it == nil {
		return nil, nil
	}
	s := &commerce.Stored{
		Revision: getTime(it, attrRevision), Arrived: getTime(it, attrArrived),
		Deleted: getBool(it, attrDeleted), Silent: getBool(it, attrSilent),
		ExternalRef: getString(it, attrRef), Adjusted: getBool(it, attrAdjusted),
	}
	if _, ok := it[attrLowAt]; ok {
		s.LowAt = new(value.Amount(getNumber(it, attrLowAt)))
	}
	k := keyOf(it)
	var orgErr, kindErr, idErr, sitesErr error
	s.OrganizationID, orgErr = organizationOf(k.pk)
	s.Kind, kindErr = commerce.ParseKind(getString(it, attrKind))
	s.ID, idErr = value.ParseID(k.sk)
	s.SiteIDs, sitesErr = decodeSites(it)
	if err := cmp.Or(orgErr, kindErr, idErr, sitesErr); err != nil {
		return nil, fmt.Errorf("decode the record %s of %s: %w", k.sk, k.pk, err)
	}
	if _, ok := it[attrVersion]; ok {
		version := getNumber(it, attrVersion)
		s.Version = &version
	}
	if doc := getString(it, attrDoc); doc != "" {
		s.Doc = []byte(doc)
	}
	if s.Doc == nil && !s.Deleted {
		return nil, fmt.Errorf("decode the record %s: it has no document", s.ID)
	}
	return s, nil
}

func decodeSites(it item) (ids []value.ID, err error) {
	list, _ := it[attrSites].(*types.AttributeValueMemberL)
	if list == nil {
		return nil, nil
	}
	for _, v := range list.Value {
		site, _ := v.(*types.AttributeValueMemberS)
		if site == nil {
			return nil, errors.New("a site that is not text")
		}
		id, err := value.ParseID(site.Value)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// RecordRef names a record.
type RecordRef struct {
	OrganizationID value.ID
	Kind           commerce.Kind
	ID             value.ID
}

// Found is the answer for one reference.
type Found struct {
	Stored     *commerce.Stored // a tombstone too; nil when there is none
	SenderKeys bool             // the organization has keys of signed senders
	Err        error            // the record could not be read
}

// ReadRecords reads records of any kind and organization, tombstones included,
// strongly consistent. The references must be distinct. It answers in their order:
// one that cannot be decoded leaves the others alone. Keys of signed senders are not
// checked any more. Their item is looked for in the same call, until this process has
// once found that the organization has none: nothing makes one. A row of stock has what
// its ledger holds.
func (t *Table) ReadRecords(ctx context.Context, refs []RecordRef) []Found {
	keys, at := make([]key, len(refs)), make(map[key]int, len(refs))
	for i, r := range refs {
		keys[i] = recordKey(r.OrganizationID, string(r.Kind), r.ID)
		at[keys[i]] = i
	}
	for _, r := range refs {
		if !t.SendsUnsigned(r.OrganizationID) {
			keys = append(keys, senderKeysKey(r.OrganizationID))
		}
		if r.Kind == commerce.KindStock {
			keys = append(keys, ledgerKey(r.OrganizationID, r.ID))
		}
	}
	items, err := t.batchGet(ctx, keys, true)
	if err != nil {
		return slices.Repeat([]Found{{Err: err}}, len(refs))
	}
	found, others := make([]Found, len(refs)), map[key]item{}
	for _, it := range t.live(items) {
		if i, isRecord := at[keyOf(it)]; isRecord {
			found[i].Stored, found[i].Err = decodeRecord(it)
		} else {
			others[keyOf(it)] = it
		}
	}
	for i, r := range refs {
		if r.Kind == commerce.KindStock && found[i].Err == nil {
			row := &commerce.StockRow{Record: found[i].Stored}
			readLedger(row, others[ledgerKey(r.OrganizationID, r.ID)])
			found[i].Stored, found[i].Err = row.Current()
		}
		if found[i].SenderKeys = others[senderKeysKey(r.OrganizationID)] != nil; !found[i].SenderKeys {
			t.unsigned.Set(r.OrganizationID, true)
		}
	}
	return found
}

// SendsUnsigned reports whether this process has found that the organization has
// no keys of signed senders.
func (t *Table) SendsUnsigned(org value.ID) bool { return t.unsigned.Get(org) }

// CreateRecords stores records of any kind and organization that are new, and
// answers in their order: nil for one that is stored, [fault.ErrChanged] for one
// whose key is taken, if only by an earlier try of this call or by a tombstone that
// has expired. They must be distinct, and each succeeds or fails on its own. One
// alone is put as by [Table.PutRecord], which costs less than a batch. The batches
// run one after another: several at a time would slow the table down for other
// writers, and hardly be done sooner.
func (t *Table) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	if len(records) == 1 {
		return []error{t.PutRecord(ctx, nil, records[0])}
	}
	items := make([]item, len(records))
	for i, s := range records {
		items[i] = encodeRecord(s)
	}
	errs := t.insert(ctx, "create records", items, 1)
	for i, s := range records {
		switch {
		case errs[i] == nil:
		case errors.Is(errs[i], errRefused):
			errs[i] = fault.ErrChanged
		case fault.Is(errs[i], fault.Unavailable):
			errs[i] = fmt.Errorf("create %s %s: %w", s.Kind, s.ID, errs[i])
		default: // the table refuses the record or a neighbour as wrong
			errs[i] = t.PutRecord(ctx, nil, s)
		}
	}
	return errs
}
