package dynamo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The slots of an endpoint are one item beside its tallies: its doc says who
// holds one until when, and mark is new with every write.
// It goes by age when nobody has held one for a while.
const slotsRetention = time.Hour

// slots are the holders of an endpoint's slots.
type slots map[string]value.Time

// TakePermit takes one of the endpoint's [webhook.PermitHolders] slots until the
// given time and reports whether it could. A holder that has one keeps it,
// until then at least; a slot whose time is over is free.
func (t *EndpointStore) TakePermit(ctx context.Context, org, endpoint value.ID, holder string, now, until value.Time) (bool, error) {
	it, err := t.get(ctx, slotsKey(org, endpoint))
	if err != nil {
		return false, err
	}
	for attempt := 1; ; attempt++ {
		held, err := decodeSlots(it)
		if err != nil {
			return false, err
		}
		if held[holder] >= until {
			return true, nil
		}
		next, free := held.take(holder, now, until)
		if !free {
			return false, nil
		}
		var done bool
		if it, done, err = t.putSlots(ctx, org, endpoint, getUnsigned(it, attrMark), next); done || err != nil {
			return done, err
		}
		if attempt == contendedAttempts {
			return false, fault.Busy(fmt.Errorf("take a slot of endpoint %s: others were faster %d times", endpoint, attempt))
		}
		if err := backOff(ctx, attempt); err != nil {
			return false, wrap("take a slot", err)
		}
	}
}

// take gives the holder a slot; free is false when there is none.
func (s slots) take(holder string, now, until value.Time) (next slots, free bool) {
	next = maps.Clone(s)
	maps.DeleteFunc(next, func(_ string, end value.Time) bool { return end <= now })
	if _, has := next[holder]; !has && len(next) >= webhook.PermitHolders {
		return nil, false
	}
	next[holder] = until
	return next, true
}

// putSlots writes the slots if they still have the mark that they were read
// with, 0 for none. Otherwise it returns them as they are.
func (t *EndpointStore) putSlots(ctx context.Context, org, endpoint value.ID, read uint64, s slots) (current item, done bool, err error) {
	doc, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return nil, false, fmt.Errorf("encode the slots of endpoint %s: %w", endpoint, err)
	}
	last := value.Time(0)
	for _, end := range s {
		last = max(last, end)
	}
	mark := newMark()
	it := slotsKey(org, endpoint).item()
	it[attrType], it[attrDoc], it[attrMark] = str(typeSlots), str(string(doc)), unsigned(mark)
	it[attrExpires] = num(last.Add(slotsRetention).Std().Unix())
	in := &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if read != 0 {
		in.ConditionExpression = aws.String("mark = :read")
		in.ExpressionAttributeValues = item{":read": unsigned(read)}
	}
	_, err = t.client.PutItem(ctx, in)
	current, failed := conditionFailed(err)
	switch {
	case failed:
		return current, getUnsigned(current, attrMark) == mark, nil
	case err != nil:
		return nil, false, wrap("take a slot", err)
	}
	return nil, true, nil
}

// decodeSlots returns no holders for what is absent.
func decodeSlots(it item) (slots, error) {
	held := slots{}
	if it == nil {
		return held, nil
	}
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &held); err != nil {
		return nil, fmt.Errorf("decode the slots %s: %w", getString(it, attrSK), err)
	}
	return held, nil
}
