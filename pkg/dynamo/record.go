package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// Attributes of a record.
const (
	attrKind     = "k"
	attrRevision = "rev"
	attrVersion  = "ver"
	attrArrived  = "arr"
	attrSites    = "sites"
	attrDeleted  = "del"
	attrSilent   = "silent"
)

// Record reads one record, strongly consistent; nil when there is none or it
// was deleted.
func (t *RecordStore) Record(ctx context.Context, org value.ID, kind commerce.Kind, id value.ID) (*commerce.Stored, error) {
	it, err := t.get(ctx, recordKey(org, string(kind), id))
	if err != nil || it == nil {
		return nil, err
	}
	s, err := decodeRecord(org, it)
	if err != nil || s.Deleted {
		return nil, err
	}
	return s, nil
}

// Records reads records of one kind, tombstones included, by id. What is
// absent is not in the answer.
func (t *RecordStore) Records(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error) {
	keys := make([]key, len(ids))
	for i, id := range ids {
		keys[i] = recordKey(org, string(kind), id)
	}
	items, err := t.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[value.ID]*commerce.Stored, len(items))
	for _, it := range items {
		s, err := decodeRecord(org, it)
		if err != nil {
			return nil, err
		}
		found[s.ID] = s
	}
	return found, nil
}

// PutRecord replaces previous, which is nil when there was none, by next. It
// fails with [fault.ErrChanged] when the table holds something else. A write that
// met its own earlier try, which the SDK repeats when a connection breaks
// after the answer, has succeeded.
func (t *RecordStore) PutRecord(ctx context.Context, previous, next *commerce.Stored) error {
	in := &dynamodb.PutItemInput{
		TableName: &t.name, Item: encodeRecord(next),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch {
	case previous == nil:
		in.ConditionExpression = aws.String("attribute_not_exists(PK) OR expiresAtEpoch <= :now")
		in.ExpressionAttributeValues = item{":now": num(t.now().Unix())}
	case previous.Version == nil:
		in.ConditionExpression = aws.String("rev = :rev AND attribute_not_exists(ver)")
		in.ExpressionAttributeValues = item{":rev": num(int64(previous.Revision))}
	default:
		in.ConditionExpression = aws.String("rev = :rev AND ver = :ver")
		in.ExpressionAttributeValues = item{":rev": num(int64(previous.Revision)), ":ver": num(*previous.Version)}
	}
	_, err := t.client.PutItem(ctx, in)
	if current, failed := conditionFailed(err); failed {
		if sameRecord(current, in.Item) {
			return nil
		}
		return fault.ErrChanged
	}
	if err != nil {
		return wrap(fmt.Sprintf("put %s %s", next.Kind, next.ID), err)
	}
	return nil
}

func sameRecord(a, b item) bool {
	for _, name := range []string{attrRevision, attrVersion} {
		if getNumber(a, name) != getNumber(b, name) {
			return false
		}
	}
	return getString(a, attrDoc) == getString(b, attrDoc) && getBool(a, attrDeleted) == getBool(b, attrDeleted)
}

// Shards is the number of shards that an organization's records of a kind,
// and its webhook rows, are spread over.
const Shards = shards

// RecordsPage reads one page of a shard of the organization's records of the
// kind, tombstones included, in the order of their ids, strongly consistent.
// after is "" at the start, then the next that the page before gave; next is
// "" at the end. A page holds at most limit records, and fewer, even none,
// where it would pass 1 MB or holds expired tombstones.
func (t *RecordStore) RecordsPage(ctx context.Context, org value.ID, kind commerce.Kind, shard int, after string, limit int) (page []*commerce.Stored, next string, err error) {
	next, err = t.page(ctx, recordPartition(org, string(kind), shard), after, limit, func(it item) error {
		s, err := decodeRecord(org, it)
		if err == nil {
			page = append(page, s)
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("read a page of %s shard %d: %w", kind, shard, err)
	}
	return page, next, nil
}

// page hands the unexpired items of one page of a partition to each and
// returns the sort key to go on behind, "" at the end.
func (t *db) page(ctx context.Context, pk, after string, limit int, each func(item) error) (next string, err error) {
	in := partition(pk, "")
	in.TableName, in.Limit = &t.name, aws.Int32(int32(min(limit, pageMax))) //nolint:gosec // bounded
	if after != "" {
		in.KeyConditionExpression = aws.String("PK = :pk AND SK > :after")
		in.ExpressionAttributeValues[":after"] = str(after)
	}
	out, err := t.client.Query(ctx, in)
	if err != nil {
		return "", wrap("query", err)
	}
	for _, it := range out.Items {
		if t.expired(it) {
			continue
		}
		if err := each(it); err != nil {
			return "", err
		}
	}
	return getString(out.LastEvaluatedKey, attrSK), nil
}

// pageMax bounds a page: no more of the smallest items fit into the 1 MB that
// a query answers.
const pageMax = 10_000

// AllRecords hands every record of the kind, tombstones included, to each,
// which is called by one goroutine at a time. The shards are read in
// parallel and in no order.
func (t *RecordStore) AllRecords(ctx context.Context, org value.ID, kind commerce.Kind, each func(*commerce.Stored) error) error {
	return t.shardQuery(ctx, org, string(kind), func(it item) error {
		s, err := decodeRecord(org, it)
		if err != nil {
			return err
		}
		return each(s)
	})
}

// shardQuery reads all shards of a kind in parallel; each is called by one
// goroutine at a time.
func (t *db) shardQuery(ctx context.Context, org value.ID, kind string, each func(item) error) error {
	group, ctx := errgroup.WithContext(ctx)
	items := make(chan item, 256)
	for shard := range shards {
		group.Go(func() error {
			return t.query(ctx, partition(recordPartition(org, kind, shard), ""), func(it item) (bool, error) {
				select {
				case items <- it:
					return true, nil
				case <-ctx.Done():
					return false, ctx.Err()
				}
			})
		})
	}
	var readErr error
	done := make(chan struct{})
	go func() {
		readErr = group.Wait()
		close(items)
		close(done)
	}()
	var err error
	for it := range items {
		if err == nil {
			err = each(it)
		}
	}
	<-done
	if err != nil {
		return err
	}
	return readErr
}

func encodeRecord(s *commerce.Stored) item {
	it := recordKey(s.OrganizationID, string(s.Kind), s.ID).item()
	it[attrType], it[attrKind], it[attrRevision] = str(typeRecord), str(string(s.Kind)), num(int64(s.Revision))
	if s.Version != nil {
		it[attrVersion] = num(*s.Version)
	}
	if s.Silent {
		it[attrSilent] = boolean(true)
	}
	if s.Arrived != 0 {
		it[attrArrived] = num(int64(s.Arrived))
	}
	if at, deleted := s.ExpiresAt(); deleted {
		it[attrDeleted] = boolean(true)
		it[attrExpires] = num(at.Std().Unix())
		return it
	}
	it[attrDoc] = str(string(s.Doc))
	if len(s.SiteIDs) > 0 {
		sites := make([]types.AttributeValue, len(s.SiteIDs))
		for i, id := range s.SiteIDs {
			sites[i] = str(id.String())
		}
		it[attrSites] = &types.AttributeValueMemberL{Value: sites}
	}
	return it
}

func decodeRecord(org value.ID, it item) (*commerce.Stored, error) {
	s := &commerce.Stored{
		OrganizationID: org, Revision: value.Time(getNumber(it, attrRevision)),
		Deleted: getBool(it, attrDeleted), Silent: getBool(it, attrSilent),
		Arrived: value.Time(getNumber(it, attrArrived)),
	}
	var err error
	if s.Kind, err = commerce.ParseKind(getString(it, attrKind)); err != nil {
		return nil, fmt.Errorf("decode the record %s: its kind %w", getString(it, attrSK), err)
	}
	if s.ID, err = value.ParseID(getString(it, attrSK)); err != nil {
		return nil, fmt.Errorf("decode the record %q: its id %w", getString(it, attrSK), err)
	}
	if _, ok := it[attrVersion]; ok {
		version := getNumber(it, attrVersion)
		s.Version = &version
	}
	if doc := getString(it, attrDoc); doc != "" {
		s.Doc = []byte(doc)
	}
	if list, ok := it[attrSites].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			site, ok := v.(*types.AttributeValueMemberS)
			if !ok {
				return nil, fmt.Errorf("decode the record %s: a site that is no text", s.ID)
			}
			id, err := value.ParseID(site.Value)
			if err != nil {
				return nil, fmt.Errorf("decode the record %s: a site %w", s.ID, err)
			}
			s.SiteIDs = append(s.SiteIDs, id)
		}
	}
	if s.Doc == nil && !s.Deleted {
		return nil, fmt.Errorf("decode the record %s: it has no document", s.ID)
	}
	return s, nil
}
