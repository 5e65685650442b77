package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// A recovery that runs lies under a due mark, by which the sweeper goes on
// with it. Its endpoint names it, so that there is one at a time.

// recoveryRetention is how long a recovery can be read: longer than the rows
// that it sent.
const recoveryRetention = 32 * 24 * time.Hour

// CreateRecovery stores a recovery, to be continued by the sweeper from next
// on. A fault conflict means that the endpoint is not ACTIVE, or that
// another recovery of it runs.
func (t *DeliveryStore) CreateRecovery(ctx context.Context, r *webhook.Recovery, next value.Time) error {
	it, err := encodeRecovery(r, next)
	if err != nil {
		return err
	}
	err = t.transact(ctx, "create a recovery",
		write{Put: &types.Put{TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)")}},
		write{Update: &types.Update{
			TableName: &t.name, Key: endpointKey(r.OrganizationID, r.EndpointID).item(),
			UpdateExpression:         aws.String("SET recovery = :id"),
			ConditionExpression:      aws.String("#status = :active AND attribute_not_exists(recovery)"),
			ExpressionAttributeNames: map[string]string{"#status": attrStatus},
			ExpressionAttributeValues: item{
				":id": str(r.ID.String()), ":active": str(string(webhook.Active)),
			},
		}},
	)
	if failed := refused(nil); errors.As(err, &failed) {
		return fault.New(fault.Conflict, fault.CodeConflict,
			"the endpoint is not ACTIVE, or a recovery of it runs already: activate it, or wait for the recovery to end")
	}
	return err
}

// Recovery reads one recovery; nil when the endpoint has none with the id.
func (t *DeliveryStore) Recovery(ctx context.Context, org, endpoint, id value.ID) (*webhook.Recovery, error) {
	it, err := t.get(ctx, recoveryKey(org, endpoint, id))
	if err != nil || it == nil {
		return nil, err
	}
	var r webhook.Recovery
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &r); err != nil {
		return nil, fmt.Errorf("decode %s: %w", getString(it, attrSK), err)
	}
	return &r, nil
}

// PutRecovery replaces previous by next, to be continued from the given time
// on while it runs; a recovery that ended frees its endpoint for another. It
// fails with [fault.ErrChanged] when somebody else was faster.
func (t *DeliveryStore) PutRecovery(ctx context.Context, previous, next *webhook.Recovery, from value.Time) error {
	it, err := encodeRecovery(next, from)
	if err != nil {
		return err
	}
	put := write{Put: &types.Put{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("rev = :rev"),
		ExpressionAttributeValues: item{":rev": num(int64(previous.UpdatedAt))},
	}}
	if next.Status == webhook.RecoveryRunning {
		return t.putRecovery(ctx, put)
	}
	free := write{Update: &types.Update{
		TableName: &t.name, Key: endpointKey(next.OrganizationID, next.EndpointID).item(),
		UpdateExpression:          aws.String("REMOVE recovery"),
		ConditionExpression:       aws.String("recovery = :id"),
		ExpressionAttributeValues: item{":id": str(next.ID.String())},
	}}
	err = t.transact(ctx, "end a recovery", put, free)
	var failed refused
	switch {
	case !errors.As(err, &failed):
		return err
	case failed.has(0):
		return fault.ErrChanged
	}
	return t.putRecovery(ctx, put) // the endpoint was deleted
}

func (t *DeliveryStore) putRecovery(ctx context.Context, put write) error {
	err := t.transact(ctx, "continue a recovery", put)
	if failed := refused(nil); errors.As(err, &failed) {
		return fault.ErrChanged
	}
	return err
}

func encodeRecovery(r *webhook.Recovery, from value.Time) (item, error) {
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode recovery %s: %w", r.ID, err)
	}
	it := recoveryKey(r.OrganizationID, r.EndpointID, r.ID).item()
	it[attrType], it[attrDoc], it[attrRevision] = str(typeRecovery), str(string(doc)), num(int64(r.UpdatedAt))
	it[attrExpires] = num(r.CreatedAt.Add(recoveryRetention).Std().Unix())
	if r.Status == webhook.RecoveryRunning {
		markDue(it, r.ID, from)
	}
	return it, nil
}
