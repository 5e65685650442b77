package dynamo

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/webhook"
)

// outcomeTries bounds the tries of a write that throttles or does not answer.
// What is not recorded is attempted again, which the receiver sees.
const outcomeTries = 4

// RecordOutcomes writes outcomes and the tallies that count them, all or
// nothing; each row and each tally once, [webhook.MaxOutcomeWrites] writes together. A
// clash means that nothing was written: what it names is to be left out or
// made anew.
//
// A call may be made again after an error, with more or fewer outcomes: what
// had been written all the same is recognized by the mark that it carries, and
// nothing is counted twice. The mark follows from the content and is
// different in every process.
func (t *DeliveryStore) RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, tallies []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
	r, err := t.recording(outcomes, tallies)
	if err != nil {
		return nil, err
	}
	if len(r.writes) == 0 {
		return nil, nil
	}
	refusals, err := t.commit(ctx, "record outcomes", outcomeTries, r.writes)
	if len(refusals) == 0 || err != nil {
		return nil, err
	}
	return r.clash(refusals)
}

// recording is a transaction on its way.
type recording struct {
	outcomes []webhook.DeliveryChange
	tallies  []webhook.CounterShardWrite
	writes   []write
	marks    []uint64 // of the outcomes
	whole    uint64   // the mark of all together, which the tallies carry
}

func (t *DeliveryStore) recording(outcomes []webhook.DeliveryChange, tallies []webhook.CounterShardWrite) (*recording, error) {
	r := &recording{
		outcomes: outcomes, tallies: tallies, marks: make([]uint64, len(outcomes)),
		writes: make([]write, 0, len(outcomes)+2*len(tallies)),
	}
	var all maphash.Hash
	all.SetSeed(t.seed)
	for i, o := range outcomes {
		it, err := encodeRow(o.Next)
		if err != nil {
			return nil, err
		}
		r.marks[i] = max(1, maphash.String(t.seed, getString(it, attrDoc)))
		maphash.WriteComparable(&all, r.marks[i])
		it[attrWrite] = unsigned(r.marks[i])
		r.writes = append(r.writes, write{Put: &types.Put{
			TableName: &t.name, Item: it, ConditionExpression: aws.String("rev = :rev"),
			ExpressionAttributeValues:           item{":rev": num(int64(o.Previous.UpdatedAt))},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}})
	}
	for _, w := range tallies {
		maphash.WriteComparable(&all, w.EndpointID)
		maphash.WriteComparable(&all, w.Number)
	}
	r.whole = max(1, all.Sum64())
	for i := range tallies {
		r.writes = append(r.writes, t.db.putCounterShard(&tallies[i], r.whole))
	}
	for i := range tallies {
		if tallies[i].Finished != nil {
			r.writes = append(r.writes, t.db.putHour(&tallies[i]))
		}
	}
	if len(r.writes) > webhook.MaxOutcomeWrites {
		return nil, fmt.Errorf("record outcomes: %d writes, %d is the most", len(r.writes), webhook.MaxOutcomeWrites)
	}
	return r, nil
}

// clash reads why conditions did not hold; nil when all of it had been
// written by an earlier call.
func (r *recording) clash(refusals []refusal) (*webhook.WriteConflict, error) {
	c := &webhook.WriteConflict{Deliveries: map[int]*webhook.Delivery{}, Recorded: map[int]bool{}, Shards: map[int]webhook.StoredCounterShard{}}
	for _, refused := range refusals {
		i := refused.position
		mark := getUnsigned(refused.current, attrWrite)
		if i < len(r.outcomes) {
			if mark == r.marks[i] {
				c.Recorded[i] = true
				continue
			}
			row, err := decodeRow(refused.current)
			if err != nil {
				return nil, err
			}
			c.Deliveries[i] = row
			continue
		}
		i -= len(r.outcomes)
		if mark == r.whole {
			// It was written together with all the others, whatever has
			// become of them since.
			return nil, nil
		}
		stored, err := decodeTally(refused.current, r.tallies[i].Number)
		if err != nil {
			return nil, err
		}
		c.Shards[i] = stored
	}
	if len(r.tallies) == 0 && len(c.Recorded) == len(r.outcomes) {
		return nil, nil
	}
	return c, nil
}
