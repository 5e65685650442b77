package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/value"
)

// attrCovered stands beside the body so that a writer of the tail can read it.
const attrCovered = "covered"

// index.StoredManifest reads a manifest, strongly consistent; nil when there is none.
func (t *IndexStore) Manifest(ctx context.Context, org value.ID, list, which string) (*index.StoredManifest, error) {
	it, err := t.get(ctx, manifestKey(org, list, which))
	if err != nil || it == nil {
		return nil, err
	}
	return &index.StoredManifest{
		Version: getUnsigned(it, attrItemVersion), Covered: getUnsigned(it, attrCovered), Body: getBinary(it, attrBody),
	}, nil
}

// covered reads how far the segments of a list go; 0 without a manifest.
func (t *IndexStore) covered(ctx context.Context, org value.ID, list string) (uint64, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, Key: manifestKey(org, list, index.LiveManifest).item(), ConsistentRead: aws.Bool(true),
		ProjectionExpression: aws.String(attrCovered),
	})
	if err != nil {
		return 0, wrap("read what a manifest covers", err)
	}
	return getUnsigned(out.Item, attrCovered), nil
}

// PutManifest replaces the manifest of the version before m's; of version 1
// there may be none. It reports false, and has written nothing, when another
// was faster. A write that met its own earlier try has succeeded. After an
// error the write may have been made nevertheless.
func (t *IndexStore) PutManifest(ctx context.Context, org value.ID, list, which string, m index.StoredManifest) (bool, error) {
	if err := checkBody("a manifest", m.Body); err != nil {
		return false, err
	}
	mark := newMark()
	it := manifestKey(org, list, which).item()
	it[attrType], it[attrItemVersion], it[attrCovered] = str(typeManifest), unsigned(m.Version), unsigned(m.Covered)
	it[attrBody], it[attrMark] = bodyValue(m.Body), unsigned(mark)
	in := &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if m.Version != 1 {
		in.ConditionExpression = aws.String("itemVersion = :replaced")
		in.ExpressionAttributeValues = item{":replaced": unsigned(m.Version - 1)}
	}
	repeated := false
	_, err := t.client.PutItem(ctx, in, noteRepetition(&repeated))
	current, failed := conditionFailed(err)
	switch {
	case err == nil:
		return true, nil
	case !failed:
		return false, wrap("put a manifest", err)
	case getUnsigned(current, attrMark) == mark:
		return true, nil
	case repeated && getUnsigned(current, attrItemVersion) != m.Version:
		// Either the first try was written and then replaced, or it never was.
		return false, fault.Busy(fmt.Errorf("put version %d of the manifest of %s: its answer was lost and another version stands there now", m.Version, list))
	}
	return false, nil
}

// DropManifest removes the manifest of the version; one that is gone already
// is no error. It fails with [fault.ErrChanged] when another version is there.
// Without a live manifest and without entries a tail starts from 1 again.
func (t *IndexStore) DeleteManifest(ctx context.Context, org value.ID, list, which string, version uint64) error {
	_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &t.name, Key: manifestKey(org, list, which).item(),
		ConditionExpression:       aws.String("attribute_not_exists(PK) OR itemVersion = :version"),
		ExpressionAttributeValues: item{":version": unsigned(version)},
	})
	if _, failed := conditionFailed(err); failed {
		return fault.ErrChanged
	}
	if err != nil {
		return wrap("drop a manifest", err)
	}
	return nil
}

// noteRepetition is an option of a call that sets repeated when the SDK sends
// the request more than once.
func noteRepetition(repeated *bool) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.Retryer = repetitionNoter{o.Retryer, repeated} }
}

type repetitionNoter struct {
	aws.Retryer
	repeated *bool
}

func (n repetitionNoter) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	*n.repeated = true
	return n.Retryer.GetRetryToken(ctx, err)
}
