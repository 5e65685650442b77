package dynamo

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/webhook"
)

// maxOutcomeTries bounds the tries of a write that throttles or does not
// answer. An attempt whose outcome is not recorded is made again, and the
// receiver sees it twice.
const maxOutcomeTries = 4

// RecordOutcomes writes deliveries after their attempts and the counter shards
// that count them, all or nothing: each delivery and each shard once, at most
// [webhook.MaxOutcomeWrites] writes together. A conflict means that nothing was
// written; the caller leaves out the writes that it names, or makes them anew.
//
// A call may be made again after an error, with more or fewer outcomes: a
// write that was made all the same is recognized by its token, and nothing is
// counted twice. The token is a hash of the content, different in every
// process.
func (t *Table) RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
	r, err := t.recording(outcomes, shards)
	if err != nil || len(r.writes) == 0 {
		return nil, err
	}
	refused, err := t.transactTries(ctx, "record outcomes", maxOutcomeTries, r.writes)
	if len(refused) == 0 || err != nil {
		return nil, err
	}
	return r.conflict(refused)
}

// recording is one transaction of outcomes.
type recording struct {
	outcomes []webhook.DeliveryChange
	shards   []webhook.CounterShardWrite
	writes   []write
	tokens   []uint64 // of the outcomes
	whole    uint64   // the token of all together, in the counter shards
}

func (t *Table) recording(outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) (*recording, error) {
	r := &recording{
		outcomes: outcomes, shards: shards, tokens: make([]uint64, len(outcomes)),
		writes: make([]write, 0, len(outcomes)+2*len(shards)),
	}
	var all maphash.Hash
	all.SetSeed(t.seed)
	for i, o := range outcomes {
		it := encodeDelivery(o.Next)
		r.tokens[i] = max(1, maphash.String(t.seed, getString(it, attrDoc)))
		maphash.WriteComparable(&all, r.tokens[i])
		it[attrWrite] = num(r.tokens[i])
		r.writes = append(r.writes, t.put(it, ifRevision(o.Previous.UpdatedAt)))
	}
	for _, w := range shards {
		maphash.WriteComparable(&all, w.EndpointID)
		maphash.WriteComparable(&all, w.Number)
	}
	r.whole = max(1, all.Sum64())
	var finished []write
	for i := range shards {
		r.writes = append(r.writes, t.putCounterShard(&shards[i], r.whole))
		finished = append(finished, t.putFinished(&shards[i])...)
	}
	r.writes = append(r.writes, finished...)
	if len(r.writes) > webhook.MaxOutcomeWrites {
		return r, fmt.Errorf("record outcomes: %d writes, %d is the most", len(r.writes), webhook.MaxOutcomeWrites)
	}
	return r, nil
}

// putFinished are the writes of the hour and the day that a counter shard has
// finished.
func (t *Table) putFinished(w *webhook.CounterShardWrite) (finished []write) {
	if w.Finished != nil {
		finished = append(finished, t.putHour(w))
	}
	if w.FinishedDay != nil {
		finished = append(finished, t.putEventDay(w))
	}
	return finished
}

// RecordEach writes deliveries after their attempts, each on its own, at most
// [webhook.MaxOutcomeWrites], and leaves the attempts to the stream to count:
// half of the units, and no counter shard. A conflict names all outcomes, those
// that are written as recorded. A call may be made again after an error, as of
// [Table.RecordOutcomes].
func (t *Table) RecordEach(ctx context.Context, outcomes []webhook.DeliveryChange) (*webhook.WriteConflict, error) {
	r, err := t.recording(outcomes, nil)
	if err != nil {
		return nil, err
	}
	refused := refusals{}
	var together []int
	for i, o := range outcomes {
		r.writes[i].Put.Item[attrUncounted] = boolean(true)
		// An UPDATE leaves the attributes of an index alone.
		if len(outcomes) > 1 && o.Previous.DueAt == nil && !o.Previous.Unsent() && !o.Next.Unsent() {
			together = append(together, i)
			continue
		}
		found, done, err := t.putItem(ctx, "record an outcome", r.writes[i])
		if err != nil {
			return nil, err
		}
		if !done {
			refused[i] = found
		}
	}
	if err := t.updateTogether(ctx, r, together, refused); err != nil || len(refused) == 0 {
		return nil, err
	}
	c, err := r.conflict(refused)
	if c == nil || err != nil {
		return nil, err
	}
	for i := range outcomes {
		if !refused.has(i) {
			c.Recorded[i] = true
		}
	}
	return c, nil
}

// updateTogether makes puts of deliveries by PartiQL's UPDATE in batches, each
// statement on its own, and adds to refused those whose condition does not hold.
func (t *Table) updateTogether(ctx context.Context, r *recording, which []int, refused refusals) error {
	statement := `UPDATE "` + t.name + `" SET doc=?, rev=?, w=?, uncounted=? WHERE PK=? AND SK=? AND rev=?`
	for some := range slices.Chunk(which, maxInsertItems) {
		statements := make([]types.BatchStatementRequest, len(some))
		for i, at := range some {
			it := r.writes[at].Put.Item
			statements[i] = types.BatchStatementRequest{Statement: &statement, Parameters: []types.AttributeValue{
				it[attrDoc], it[attrRevision], it[attrWrite], it[attrUncounted], it[attrPK], it[attrSK], num(r.outcomes[at].Previous.UpdatedAt),
			}}
		}
		var keys []key
		for i, err := range t.execute(ctx, "record outcomes", maxOutcomeTries, statements) {
			switch {
			case errors.Is(err, errRefused):
				refused[some[i]] = nil
				keys = append(keys, keyOf(r.writes[some[i]].Put.Item))
			case err != nil:
				return err
			}
		}
		found, err := t.batchGet(ctx, keys, true)
		if err != nil {
			return err
		}
		for _, it := range t.live(found) {
			at := slices.IndexFunc(some, func(at int) bool { return keyOf(r.writes[at].Put.Item) == keyOf(it) })
			refused[some[at]] = it
		}
	}
	return nil
}

// conflict reads why conditions did not hold; nil when an earlier call had
// written everything.
func (r *recording) conflict(refused refusals) (*webhook.WriteConflict, error) {
	c := &webhook.WriteConflict{Deliveries: map[int]*webhook.Delivery{}, Recorded: map[int]bool{}, Shards: map[int]webhook.StoredCounterShard{}}
	for position, current := range refused {
		token, shard := getUnsigned(current, attrWrite), position-len(r.outcomes)
		var err error
		switch {
		case shard >= 0 && token == r.whole:
			return nil, nil // written together with all the others, which may have changed since
		case shard >= 0:
			c.Shards[shard], err = decodeCounterShard(current, r.shards[shard].Number)
		case token == r.tokens[position]:
			c.Recorded[position] = true
		default:
			c.Deliveries[position], err = decodeDelivery(current)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(r.shards) == 0 && len(c.Recorded) == len(r.outcomes) {
		return nil, nil
	}
	return c, nil
}
