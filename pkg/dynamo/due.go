package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// DueShards is the number of partitions that due marks are spread over.
const DueShards = shards

// markDue puts an item under a due mark.
func markDue(it item, id value.ID, at value.Time) {
	it[attrGSI1PK], it[attrGSI1SK] = str(duePartition(shardOf(id))), str(timedSort(at, id))
}

// circuitMark is the due mark of an endpoint's circuit. An index that holds
// nothing but keys tells it by its end from that of the endpoint's deletion.
func circuitMark(at value.Time, endpoint value.ID) string {
	return timedSort(at, endpoint) + circuitSuffix
}

const circuitSuffix = "#CIRCUIT"

// Due reads up to limit due marks of a shard whose time lies before the
// given one, the oldest first, behind the mark after unless it is "". The
// index follows the table within a moment: a mark may already have moved.
func (t *DeliveryStore) Due(ctx context.Context, shard int, after string, before value.Time, limit int) ([]webhook.Due, error) {
	var found []webhook.Due
	in := timed(duePartition(shard), behind(after), before.String(), limit)
	err := t.query(ctx, in, func(it item) (bool, error) {
		d, err := decodeDue(it)
		if err == nil {
			found = append(found, d)
		}
		return len(found) < limit, err
	})
	return found, err
}

// behind is the sort key that follows the given one, or the first of all
// when there is none: "~" stands behind and "!" before every character of a
// sort key.
func behind(sk string) string {
	if sk == "" {
		return "!"
	}
	return sk + "~"
}

// timed is the query of a GSI1 partition in the order of time, which is that
// of the text, from the sort key after to the one before.
func timed(pk, after, before string, limit int) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		IndexName:              aws.String(gsi1),
		KeyConditionExpression: aws.String("GSI1PK = :pk AND GSI1SK BETWEEN :after AND :before"),
		ExpressionAttributeValues: item{
			":pk": str(pk), ":after": str(after), ":before": str(before),
		},
		Limit: aws.Int32(int32(min(limit, 1000))), //nolint:gosec // bounded
	}
}

func decodeDue(it item) (webhook.Due, error) {
	pk, sk := getString(it, attrPK), getString(it, attrSK)
	d := webhook.Due{Mark: getString(it, attrGSI1SK)}
	parts := strings.Split(pk, "#")
	if len(parts) < 3 || parts[0] != "ORG" {
		return d, fmt.Errorf("a due mark of the unknown item %s %s", pk, sk)
	}
	var err error
	if d.OrganizationID, err = value.ParseID(parts[1]); err != nil {
		return d, fmt.Errorf("a due mark of %s: %w", pk, err)
	}
	text := sk
	switch {
	case parts[2] == eventKind:
		d.Kind = webhook.DueDelivery
	case strings.HasPrefix(sk, endpointPrefix):
		d.Kind, text = webhook.DueDeletion, strings.TrimPrefix(sk, endpointPrefix)
		if strings.HasSuffix(d.Mark, circuitSuffix) {
			d.Kind = webhook.DueCircuit
		}
	case strings.HasPrefix(sk, recoveryPrefix):
		endpoint, id, _ := strings.Cut(strings.TrimPrefix(sk, recoveryPrefix), "#")
		d.Kind, text = webhook.DueRecovery, id
		if d.EndpointID, err = value.ParseID(endpoint); err != nil {
			return d, fmt.Errorf("a due mark of %s %s: %w", pk, sk, err)
		}
	default:
		return d, fmt.Errorf("a due mark of the unknown item %s %s", pk, sk)
	}
	if d.ID, err = value.ParseID(text); err != nil {
		return d, fmt.Errorf("a due mark of %s %s: %w", pk, sk, err)
	}
	return d, nil
}

// Postpone moves a due mark to the given time and returns it as it stands
// then; nil when it no longer stood as it was found. Of a row it returns the
// row too.
func (t *DeliveryStore) Postpone(ctx context.Context, d webhook.Due, until value.Time) (moved *webhook.Due, row *webhook.Delivery, err error) {
	next := d
	next.Mark = timedSort(until, d.ID)
	if d.Kind == webhook.DueCircuit {
		next.Mark = circuitMark(until, d.ID)
	}
	out, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: dueKey(d).item(),
		UpdateExpression:          aws.String("SET GSI1SK = :next"),
		ConditionExpression:       aws.String("GSI1SK = :found"),
		ExpressionAttributeValues: item{":next": str(next.Mark), ":found": str(d.Mark)},
		ReturnValues:              types.ReturnValueAllNew,
	})
	if _, failed := conditionFailed(err); failed {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, wrap("move a due mark", err)
	}
	if d.Kind == webhook.DueDelivery && !t.expired(out.Attributes) {
		row, err = decodeRow(out.Attributes)
	}
	return &next, row, err
}

func dueKey(d webhook.Due) key {
	switch d.Kind {
	case webhook.DueRecovery:
		return recoveryKey(d.OrganizationID, d.EndpointID, d.ID)
	case webhook.DueDeletion, webhook.DueCircuit:
		return endpointKey(d.OrganizationID, d.ID)
	default:
		return eventKey(d.OrganizationID, d.ID)
	}
}
