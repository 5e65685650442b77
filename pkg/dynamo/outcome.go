package dynamo

import (
	"context"
	"fmt"
	"hash/maphash"

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
func (t *DeliveryStore) RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
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

func (t *DeliveryStore) recording(outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) (*recording, error) {
	r := &recording{
		outcomes: outcomes, shards: shards, tokens: make([]uint64, len(outcomes)),
		writes: make([]write, 0, len(outcomes)+2*len(shards)),
	}
	var all maphash.Hash
	all.SetSeed(t.seed)
	for i, o := range outcomes {
		it, err := encodeDelivery(o.Next)
		if err != nil {
			return r, err
		}
		r.tokens[i] = max(1, maphash.String(t.seed, getString(it, attrDoc)))
		maphash.WriteComparable(&all, r.tokens[i])
		it[attrWrite] = unsigned(r.tokens[i])
		r.writes = append(r.writes, t.putRevision(it, o.Previous.UpdatedAt))
	}
	for _, w := range shards {
		maphash.WriteComparable(&all, w.EndpointID)
		maphash.WriteComparable(&all, w.Number)
	}
	r.whole = max(1, all.Sum64())
	var finished []write
	for i := range shards {
		r.writes = append(r.writes, t.putCounterShard(&shards[i], r.whole))
		if shards[i].Finished != nil {
			finished = append(finished, t.putHour(&shards[i]))
		}
		if shards[i].FinishedDay != nil {
			finished = append(finished, t.putEventDay(&shards[i]))
		}
	}
	r.writes = append(r.writes, finished...)
	if len(r.writes) > webhook.MaxOutcomeWrites {
		return r, fmt.Errorf("record outcomes: %d writes, %d is the most", len(r.writes), webhook.MaxOutcomeWrites)
	}
	return r, nil
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
