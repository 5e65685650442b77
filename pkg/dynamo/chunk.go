package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// A batch read answers at most 16 MB. Requests of half of that keep what
	// is held undecoded small, and few chunks are still read in parallel.
	chunkRequests = 4
	chunkBatchMin = 4
	chunkBatchMax = 20
)

// PutChunk writes a chunk to its slot and reports false when the slot is
// somebody else's. replaces is the mark of the content that may be written
// over, 0 for a slot that must be empty. Writing a chunk again succeeds.
func (t *IndexStore) PutChunk(ctx context.Context, org value.ID, list string, c index.StoredChunk, replaces uint64) (bool, error) {
	if err := checkBody("a chunk", c.Body); err != nil {
		return false, err
	}
	it := chunkKey(org, list, c.Number).item()
	it[attrType], it[attrMark], it[attrBody] = str(typeChunk), unsigned(c.ContentID), bodyValue(c.Body)
	in := &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if replaces != 0 {
		in.ConditionExpression = aws.String("attribute_not_exists(PK) OR mark = :replaces")
		in.ExpressionAttributeValues = item{":replaces": unsigned(replaces)}
	}
	_, err := t.client.PutItem(ctx, in)
	if found, failed := conditionFailed(err); failed {
		return getUnsigned(found, attrMark) == c.ContentID, nil
	}
	if err != nil {
		return false, wrap("put a chunk", err)
	}
	return true, nil
}

// DropChunk removes what lies in a slot if it has the mark. That costs as
// much as writing it: a slot is better kept and written over.
func (t *IndexStore) DeleteChunk(ctx context.Context, org value.ID, list string, slot, mark uint64) error {
	_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &t.name, Key: chunkKey(org, list, slot).item(),
		ConditionExpression: aws.String("mark = :mark"), ExpressionAttributeValues: item{":mark": unsigned(mark)},
	})
	if _, failed := conditionFailed(err); err != nil && !failed {
		return wrap("drop a chunk", err)
	}
	return nil
}

// Chunks reads the chunks in the slots, which must be distinct, several
// requests at a time, and hands them to each in no order, one at a time. Empty
// slots are left out; an error of each ends the reading. Unless it is strongly
// consistent, which costs twice as much, an earlier content may be read.
func (t *IndexStore) Chunks(ctx context.Context, org value.ID, list string, slots []uint64, consistent bool, each func(index.StoredChunk) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(chunkRequests)
	var mu sync.Mutex
	give := func(it item) error {
		c, err := decodeChunk(chunkPrefix(org, list), it)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if err := ctx.Err(); err != nil {
			return wrap("read chunks", err)
		}
		return each(c)
	}
	even := (len(slots) + chunkRequests - 1) / chunkRequests
	for batch := range slices.Chunk(slots, min(max(even, chunkBatchMin), chunkBatchMax)) {
		keys := make([]item, len(batch))
		for i, slot := range batch {
			keys[i] = chunkKey(org, list, slot).item()
		}
		group.Go(func() error { return t.chunkBatch(ctx, keys, consistent, give) })
	}
	return group.Wait()
}

// chunkBatch asks again for what the table left unprocessed, for as long as
// the context allows.
func (t *IndexStore) chunkBatch(ctx context.Context, keys []item, consistent bool, give func(item) error) error {
	request := map[string]types.KeysAndAttributes{t.name: {Keys: keys, ConsistentRead: &consistent}}
	for attempt := 1; ; attempt++ {
		out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err != nil {
			return wrap("read chunks", err)
		}
		for _, it := range out.Responses[t.name] {
			if err := give(it); err != nil {
				return err
			}
		}
		if request = out.UnprocessedKeys; len(request) == 0 {
			return nil
		}
		if err := backOff(ctx, min(attempt, chunkPauses)); err != nil {
			return wrap("read chunks", err)
		}
	}
}

// chunkPauses is the attempt from which the pauses grow no more.
const chunkPauses = 8

func decodeChunk(prefix string, it item) (index.StoredChunk, error) {
	pk := getString(it, attrPK)
	slot, err := strconv.ParseUint(strings.TrimPrefix(pk, prefix), 16, 64)
	if err != nil {
		return index.StoredChunk{}, fmt.Errorf("the chunk's key %q: %w", pk, err)
	}
	return index.StoredChunk{Number: slot, ContentID: getUnsigned(it, attrMark), Body: getBinary(it, attrBody)}, nil
}
