package dynamo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/value"
)

// TailRetention is how long entries of a list's tail are kept. They are
// folded into the index within a week; the rest is for a fold that is held up.
// Removal by age is free.
const TailRetention = 30 * 24 * time.Hour

// The tail of a list is a run of items whose sequences rise by exactly one
// from 1, so that a reader notices one that it misses. Each is put on the
// condition that it is not there yet: two writers never share a sequence, and
// none appears behind one that a reader has seen. When age has removed every
// entry, the manifest knows how far they went.
//
// The alternative was to keep recent changes in the manifest's own item, which
// is read and written at once but paid for whole with every change. What the
// table charges (go test -bench Tail), the folds' manifests included, with 200
// bytes for an entry of one change and 6,000 for one of a hundred, 128 and 16
// of which a fold takes:
//
//	                               write units  read units  read units of a
//	                                per record  per record      fresh reader
//	beside, one change, 1 KB manifest     1.02        1.00              0.5
//	inside, one change, 1 KB manifest    15.66        0.00              2.1
//	beside, one change, 8 KB manifest     1.07        1.00              0.5
//	inside, one change, 8 KB manifest    22.71        0.00              3.0
//	beside, 100 changes, 1 KB manifest    0.06        0.02              1.0
//	inside, 100 changes, 1 KB manifest    0.58        0.00              6.6
//	beside, 100 changes, 8 KB manifest    0.07        0.02              1.0
//	inside, 100 changes, 8 KB manifest    0.65        0.00              7.5
//
// Smaller folds would lower the second kind's price only to that of the
// manifest for every change, and each costs a job and a segment more.
const (
	attrBody = "body"
	attrAt   = "at"
	attrSum  = "sum"
	attrMark = "mark" // random: tells a writer its own write

	// contendedAttempts bounds the tries of a write that many make at a
	// time. Every lost one is another's success.
	contendedAttempts = 20
	// tailPutTime bounds a try with its repetitions, and so how old an
	// entry's time can be when readers see it.
	tailPutTime = 10 * time.Second
)

// AppendTail appends an entry. Entries become visible in the order of their
// sequences. After an error the entry may be there nevertheless.
//
// The body, of at most [index.MaxBody] bytes, is what entry makes for the place that
// it is to have, Sum not set. It is called ahead of each try, so that it may do
// what must have been done by the time at which the entry is there, even if
// the caller dies. An error of it ends the attempt.
func (t *IndexStore) AppendTail(ctx context.Context, org value.ID, list string, entry func(next index.Position) (body []byte, err error)) (index.Position, error) {
	mark := newMark()
	for attempt := range contendedAttempts {
		if attempt > 0 {
			if err := backOff(ctx, attempt); err != nil {
				return index.Position{}, wrap("append to the tail", err)
			}
		}
		end, err := t.tailEnd(ctx, org, list)
		if err != nil {
			return index.Position{}, err
		}
		next, done, err := t.appendAfter(ctx, org, list, end, mark, entry)
		if err != nil {
			return index.Position{}, err
		}
		if done {
			return next, nil
		}
	}
	return index.Position{}, fault.Busy(fmt.Errorf("append to the tail of %s: others were faster %d times", list, contendedAttempts))
}

// appendAfter reports false when another entry stands behind the end.
func (t *IndexStore) appendAfter(ctx context.Context, org value.ID, list string, end index.Position, mark uint64, entry func(index.Position) ([]byte, error)) (next index.Position, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tailPutTime)
	defer cancel()
	next = index.Position{Sequence: end.Sequence + 1, At: max(value.TimeOf(t.now()), end.At), Previous: end.At}
	body, err := entry(next)
	if err == nil {
		err = checkBody("an entry of the tail", body)
	}
	if err != nil {
		return next, false, err
	}
	next.Sum = end.Sum + uint64(len(body))
	done, err = t.putTail(ctx, tailKey(org, list, next.Sequence), next, mark, body)
	return next, done, err
}

func checkBody(what string, body []byte) error {
	if len(body) > index.MaxBody {
		return fmt.Errorf("%s of %d bytes: at most %d fit into an item", what, len(body), index.MaxBody)
	}
	return nil
}

// bodyValue also takes nil, which the SDK would send as no value.
func bodyValue(body []byte) types.AttributeValue {
	if body == nil {
		body = []byte{}
	}
	return binary(body)
}

// newMark returns a random number other than 0.
func newMark() uint64 {
	return 1 + rand.Uint64N(math.MaxUint64) //nolint:gosec // a mark is no secret
}

// TailEnd returns the sequence of the newest entry there is or was, 0
// before the first.
func (t *IndexStore) TailEnd(ctx context.Context, org value.ID, list string) (uint64, error) {
	end, err := t.tailEnd(ctx, org, list)
	return end.Sequence, err
}

// tailEnd reads the newest entry. When the entry before the next one is gone,
// only the sequence is set.
//
// Age removes entries in any order, the newest perhaps first. A young entry
// proves that no later one has been removed; beside an old one the manifest
// is asked too, which covered what was removed.
func (t *IndexStore) tailEnd(ctx context.Context, org value.ID, list string) (index.Position, error) {
	in := partition(tailPartition(org, list), tailPrefix)
	in.TableName, in.Limit, in.ScanIndexForward = &t.name, aws.Int32(1), aws.Bool(false)
	in.ProjectionExpression = aws.String("SK, #at, #sum")
	in.ExpressionAttributeNames = map[string]string{"#at": attrAt, "#sum": attrSum}
	out, err := t.client.Query(ctx, in)
	if err != nil {
		return index.Position{}, wrap("read the end of the tail", err)
	}
	var end index.Position
	if len(out.Items) == 1 {
		it := out.Items[0]
		if end.Sequence, err = tailSequence(it); err != nil {
			return index.Position{}, err
		}
		end.Sum, end.At = getUnsigned(it, attrSum), value.Time(getNumber(it, attrAt))
		if t.now().Sub(end.At.Std()) < TailRetention/2 {
			return end, nil
		}
	}
	covered, err := t.covered(ctx, org, list)
	if err != nil || covered <= end.Sequence {
		return end, err
	}
	return index.Position{Sequence: covered}, nil
}

func tailSequence(it item) (uint64, error) {
	sk := getString(it, attrSK)
	n, err := strconv.ParseUint(strings.TrimPrefix(sk, tailPrefix), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("the tail's key %q: %w", sk, err)
	}
	return n, nil
}

// putTail reports false when another entry has the key.
func (t *IndexStore) putTail(ctx context.Context, k key, next index.Position, mark uint64, body []byte) (done bool, err error) {
	it := k.item()
	it[attrType], it[attrBody], it[attrMark] = str(typeTail), bodyValue(body), unsigned(mark)
	it[attrAt], it[attrSum] = num(int64(next.At)), unsigned(next.Sum)
	it[attrExpires] = num(t.now().Add(TailRetention).Unix())
	_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if found, failed := conditionFailed(err); failed {
		return getUnsigned(found, attrMark) == mark, nil
	}
	if err != nil {
		return false, wrap("append to the tail", err)
	}
	return true, nil
}

// TailAfter hands the entries after the sequence to each, in order. Unless the
// reading is strongly consistent, which costs twice as much, the newest may be
// missing, and a gap may be an entry that another read will show.
func (t *IndexStore) TailAfter(ctx context.Context, org value.ID, list string, after uint64, consistent bool, each func(index.StoredEntry) error) error {
	in := partition(tailPartition(org, list), "")
	in.ConsistentRead = &consistent
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :after AND :end")
	in.ExpressionAttributeValues[":after"] = str(behind(tailKey(org, list, after).sk))
	in.ExpressionAttributeValues[":end"] = str(behind(tailPrefix))
	return t.query(ctx, in, func(it item) (bool, error) {
		e, err := decodeTail(it)
		if err != nil {
			return false, err
		}
		return true, each(e)
	})
}

// TailBack hands the entries up to the sequence to each, the newest first, for
// as long as it wants more. The reading is strongly consistent.
func (t *IndexStore) TailBack(ctx context.Context, org value.ID, list string, upTo uint64, each func(index.StoredEntry) (more bool, err error)) error {
	in := partition(tailPartition(org, list), "")
	in.ScanIndexForward = aws.Bool(false)
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :first AND :last")
	in.ExpressionAttributeValues[":first"] = str(tailPrefix)
	in.ExpressionAttributeValues[":last"] = str(tailKey(org, list, upTo).sk)
	return t.query(ctx, in, func(it item) (bool, error) {
		e, err := decodeTail(it)
		if err != nil {
			return false, err
		}
		return each(e)
	})
}

func decodeTail(it item) (index.StoredEntry, error) {
	sequence, err := tailSequence(it)
	if err != nil {
		return index.StoredEntry{}, err
	}
	return index.StoredEntry{Sequence: sequence, At: value.Time(getNumber(it, attrAt)), Body: getBinary(it, attrBody)}, nil
}

func unsigned(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

func getUnsigned(it item, name string) uint64 {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, err := strconv.ParseUint(v.Value, 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}
