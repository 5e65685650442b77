package dynamo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Attributes of an endpoint's counters. They are an item of their own, so
// that an attempt does not pay for the endpoint's size.
const (
	attrSuccesses   = "successes"
	attrFailures    = "failures"
	attrLastSuccess = "lastSuccess"
	attrLastFailure = "lastFailure"
	attrLastReason  = "lastReason"

	counterAttempts = 6
)

// AddCounters adds what was counted to the endpoint's counters; those of a
// deleted endpoint are left alone. An addition must not be made twice, so
// that the SDK may not repeat it on its own: only what the table refused is
// sent again.
func (t *Table) AddCounters(ctx context.Context, org, endpoint value.ID, c webhook.Counters) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: countersKey(org, endpoint).item(),
		ConditionExpression:       aws.String("attribute_exists(PK)"),
		ExpressionAttributeValues: item{},
	}
	var add, set []string
	if c.SuccessCount > 0 {
		add, set = append(add, "successes :s"), append(set, "lastSuccess = :sAt")
		in.ExpressionAttributeValues[":s"] = num(c.SuccessCount)
		in.ExpressionAttributeValues[":sAt"] = num(int64(*c.LastSuccessAt))
	}
	if c.FailureCount > 0 {
		add, set = append(add, "failures :f"), append(set, "lastFailure = :fAt", "lastReason = :reason")
		in.ExpressionAttributeValues[":f"] = num(c.FailureCount)
		in.ExpressionAttributeValues[":fAt"] = num(int64(*c.LastFailureAt))
		in.ExpressionAttributeValues[":reason"] = str(*c.LastFailureReason)
	}
	if len(add) == 0 {
		return nil
	}
	in.UpdateExpression = aws.String("ADD " + strings.Join(add, ", ") + " SET " + strings.Join(set, ", "))
	return t.addOnce(ctx, in)
}

func (t *Table) addOnce(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	for attempt, delay := 1, 20*time.Millisecond; ; attempt, delay = attempt+1, 2*delay {
		_, err := t.client.UpdateItem(ctx, in, func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
		if _, failed := conditionFailed(err); failed || err == nil {
			return nil
		}
		var api smithy.APIError
		if !errors.As(err, &api) || !throttles[api.ErrorCode()] || attempt == counterAttempts {
			return wrap("add to an endpoint's counters", err)
		}
		if err := pause.For(ctx, delay); err != nil {
			return wrap("add to an endpoint's counters", err)
		}
	}
}

// Counters reads the counters of the endpoints; one without is zero.
func (t *Table) Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error) {
	keys := make([]key, len(endpoints))
	for i, id := range endpoints {
		keys[i] = countersKey(org, id)
	}
	items, err := t.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[value.ID]webhook.Counters, len(items))
	for _, it := range items {
		id, err := value.ParseID(getString(it, attrSK))
		if err != nil {
			return nil, err
		}
		found[id] = decodeCounters(it)
	}
	return found, nil
}

func decodeCounters(it item) webhook.Counters {
	c := webhook.Counters{SuccessCount: getNumber(it, attrSuccesses), FailureCount: getNumber(it, attrFailures)}
	if c.SuccessCount > 0 {
		at := value.Time(getNumber(it, attrLastSuccess))
		c.LastSuccessAt = &at
	}
	if c.FailureCount > 0 {
		at, reason := value.Time(getNumber(it, attrLastFailure)), getString(it, attrLastReason)
		c.LastFailureAt, c.LastFailureReason = &at, &reason
	}
	return c
}
