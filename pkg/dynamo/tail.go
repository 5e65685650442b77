package dynamo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// TailRetention is how long entries of the change log are kept: longer than
// the 24 hours that a stream record can wait for the indexer.
const TailRetention = 26 * time.Hour

// TailEntry is one entry of a list's change log.
type TailEntry struct {
	Sequence uint64
	At       value.Time // when it was appended, and so became visible in lists
	Body     []byte
}

// The change log of a list is a run of items whose sequences rise by one.
// Each is put on the condition that it is not there yet, so that two writers
// never share a sequence and no entry appears behind one that a reader has
// already seen. The head item remembers where a run started, for a log whose
// entries have all expired.
const (
	tailHead      = "HEAD"
	attrBody      = "body"
	attrAt        = "at"
	attrStart     = "start"
	tailAttempts  = 20
	tailPageLimit = 50
)

// TailEnd returns the sequence of the newest entry, or where the next run
// will start from.
func (t *Table) TailEnd(ctx context.Context, org value.ID, list string) (uint64, error) {
	end, _, err := t.tailEnd(ctx, org, list)
	return end, err
}

// tailEnd also tells whether the log has an entry at all.
func (t *Table) tailEnd(ctx context.Context, org value.ID, list string) (end uint64, found bool, err error) {
	in := partition(tailPartition(org, list), tailPrefix)
	in.TableName, in.Limit, in.ScanIndexForward = &t.name, aws.Int32(1), aws.Bool(false)
	in.ProjectionExpression = aws.String("SK")
	out, err := t.client.Query(ctx, in)
	if err != nil {
		return 0, false, wrap("read the end of the change log", err)
	}
	if len(out.Items) == 1 {
		end, err = tailSequence(getString(out.Items[0], attrSK))
		return end, true, err
	}
	head, err := t.get(ctx, tailHeadKey(org, list))
	if err != nil {
		return 0, false, err
	}
	return uint64(getNumber(head, attrStart)), false, nil //nolint:gosec // written by us, never negative
}

func tailHeadKey(org value.ID, list string) key { return key{tailPartition(org, list), tailHead} }

func tailSequence(sk string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(sk, tailPrefix), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("change log key %q: %w", sk, err)
	}
	return n, nil
}

// AppendTail appends an entry. Entries become visible in the order of their
// sequences.
func (t *Table) AppendTail(ctx context.Context, org value.ID, list string, body []byte) error {
	for range tailAttempts {
		end, entries, err := t.tailEnd(ctx, org, list)
		if err != nil {
			return err
		}
		if !entries {
			if end, err = t.startTail(ctx, org, list, end); err != nil {
				return err
			}
		}
		done, err := t.putTail(ctx, org, list, end+1, body)
		if err != nil || done {
			return err
		}
	}
	return fault.Busy(fmt.Errorf("append to the change log of %s: %d other writers were faster", list, tailAttempts))
}

// startTail moves the head of an empty log to the present, so that the
// sequences of a new run are above those of every earlier one: they start
// from the time in milliseconds and rise by less than one a millisecond. A
// start within half the retention stands: entries after it cannot have
// expired.
func (t *Table) startTail(ctx context.Context, org value.ID, list string, start uint64) (uint64, error) {
	now := uint64(t.now().UnixMilli()) //nolint:gosec // after 1970
	if start > 0 && start+uint64(TailRetention.Milliseconds()/2) > now {
		return start, nil
	}
	_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: tailHeadKey(org, list).item(),
		UpdateExpression:          aws.String("SET #start = :now, t = :type"),
		ConditionExpression:       aws.String("attribute_not_exists(#start) OR #start = :start"),
		ExpressionAttributeNames:  map[string]string{"#start": attrStart},
		ExpressionAttributeValues: item{":now": num(int64(now)), ":start": num(int64(start)), ":type": str(typeTail)}, //nolint:gosec // times
	})
	if _, failed := conditionFailed(err); failed {
		end, _, err := t.tailEnd(ctx, org, list)
		return end, err
	}
	if err != nil {
		return 0, wrap("start the change log", err)
	}
	return now, nil
}

func (t *Table) putTail(ctx context.Context, org value.ID, list string, sequence uint64, body []byte) (done bool, err error) {
	it := tailKey(org, list, sequence).item()
	now := t.now()
	it[attrType], it[attrBody], it[attrAt] = str(typeTail), binary(body), num(now.UnixMilli())
	it[attrExpires] = num(now.Add(TailRetention).Unix())
	_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	if _, failed := conditionFailed(err); failed {
		return false, nil
	}
	if err != nil {
		return false, wrap("append to the change log", err)
	}
	return true, nil
}

// TailAfter hands the entries after the sequence to each, in order.
func (t *Table) TailAfter(ctx context.Context, org value.ID, list string, after uint64, each func(TailEntry) error) error {
	in := partition(tailPartition(org, list), "")
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :after AND :end")
	in.ExpressionAttributeValues[":after"] = str(tailKey(org, list, after+1).sk)
	in.ExpressionAttributeValues[":end"] = str(tailPrefix + "g")
	in.Limit = aws.Int32(tailPageLimit)
	return t.query(ctx, in, func(it item) (bool, error) {
		sequence, err := tailSequence(getString(it, attrSK))
		if err != nil {
			return false, err
		}
		entry := TailEntry{Sequence: sequence, At: value.Time(getNumber(it, attrAt)), Body: getBinary(it, attrBody)}
		return true, each(entry)
	})
}
