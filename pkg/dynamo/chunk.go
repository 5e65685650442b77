package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// A batch read returns at most 16 MB. Requests for half of that keep the memory
// for undecoded items small, and a few chunks are still read in parallel.
const (
	chunkRequests = 4
	minChunkBatch = 4
	maxChunkBatch = 20
)

// PutChunk writes a chunk, which must not exist or have the content to replace;
// with replaces 0 it must not exist. Otherwise PutChunk reports false. Writing
// a chunk again succeeds.
func (t *Table) PutChunk(ctx context.Context, org value.ID, list string, c index.StoredChunk, replaces uint64) (bool, error) {
	if err := checkBody("a chunk", c.Body); err != nil {
		return false, err
	}
	it := chunkKey(org, list, c.Number).newItem(typeChunk)
	it[attrBody] = binary(c.Body)
	ifReplaceable := ifAbsent
	if replaces != 0 {
		ifReplaceable = when("attribute_not_exists(PK) OR mark = :replaces", item{":replaces": num(replaces)})
	}
	_, done, err := t.putOnce(ctx, "put a chunk", it, c.ContentID, ifReplaceable)
	return done, err
}

// DeleteChunk deletes a chunk if it has the content. That costs as much as
// writing it: a chunk is better kept and overwritten.
func (t *Table) DeleteChunk(ctx context.Context, org value.ID, list string, number, contentID uint64) error {
	_, _, err := t.removeItem(ctx, "delete a chunk", t.remove(chunkKey(org, list, number), ifEqual(attrToken, contentID)))
	return err
}

// Chunks reads the chunks with the numbers, which must be distinct, with several
// requests at a time, and passes them to each one at a time, in any order.
// Missing chunks are left out; an error of each ends the reading. An eventually
// consistent read costs half, and may find an earlier content.
func (t *Table) Chunks(ctx context.Context, org value.ID, list string, numbers []uint64, consistent bool, each func(index.StoredChunk) error) error {
	var mu sync.Mutex
	even := (len(numbers) + chunkRequests - 1) / chunkRequests
	batches := slices.Collect(slices.Chunk(numbers, min(max(even, minChunkBatch), maxChunkBatch)))
	return parallel.UntilError(ctx, chunkRequests, slices.All(batches), func(ctx context.Context, _ int, batch []uint64) error {
		keys := make([]key, len(batch))
		for i, number := range batch {
			keys[i] = chunkKey(org, list, number)
		}
		items, err := t.batchGet(ctx, keys, consistent)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, it := range items {
			if err := ctx.Err(); err != nil {
				return wrap("read chunks", err)
			}
			c, err := decodeChunk(it)
			if err == nil {
				err = each(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func decodeChunk(it item) (c index.StoredChunk, err error) {
	pk := getString(it, attrPK)
	c = index.StoredChunk{ContentID: getUnsigned(it, attrToken), Body: getBinary(it, attrBody)}
	if c.Number, err = strconv.ParseUint(lastPart(pk), 16, 64); err != nil {
		err = fmt.Errorf("the chunk's key %q: %w", pk, err)
	}
	return c, err
}
