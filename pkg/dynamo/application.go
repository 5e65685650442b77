package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// Attributes of an application, beside its doc: attrItemVersion rises with
// every write to the item, attrSecretHash is the SHA-256 of the client
// secret, and attrKeys maps the text id of each key that is not revoked to
// when it expires (ms, 0: never). The map is what the limit of active keys
// counts: it holds the exact state that a condition can see.
//
// The organization's counter holds attrApplications and attrEndpoints. Both
// change only in the transaction that makes or removes what they count.
const (
	attrItemVersion  = "itemVersion"
	attrSecretHash   = "secretHash"
	attrKeys         = "keys"
	attrApplications = "applications"
	attrEndpoints    = "endpoints"
	attrApplication  = "applicationId"
)

// CreateApplication stores a new application of the organization and the
// hash of its client secret. A fault limit_reached means that there are
// [account.MaxApplications] already.
func (t *AccountStore) CreateApplication(ctx context.Context, org value.ID, app account.Application) error {
	doc, err := json.Marshal(app.Masked())
	if err != nil {
		return fmt.Errorf("encode application %s: %w", app.ID, err)
	}
	hash := account.HashSecret(app.ClientSecret)
	it := applicationKey(org, app.ID).item()
	it[attrType], it[attrDoc], it[attrSecretHash] = str(typeApplication), str(string(doc)), binary(hash[:])
	it[attrItemVersion], it[attrKeys] = num(1), &types.AttributeValueMemberM{Value: item{}}
	err = t.transact(ctx, "create an application",
		write{Put: &types.Put{TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)")}},
		write{Update: &types.Update{
			TableName: &t.name, Key: countKey(org).item(),
			UpdateExpression:          aws.String("SET t = :type ADD applications :one"),
			ConditionExpression:       aws.String("attribute_not_exists(applications) OR applications < :max"),
			ExpressionAttributeValues: item{":type": str(typeCount), ":one": num(1), ":max": num(account.MaxApplications)},
		}},
	)
	if failed := refused(nil); errors.As(err, &failed) && failed.has(1) {
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an organization can have %d applications: delete one first", account.MaxApplications)
	}
	return err
}

// Application reads one application, strongly consistent; nil when the
// organization has none with the id.
func (t *AccountStore) Application(ctx context.Context, org, id value.ID) (*account.Application, error) {
	it, err := t.get(ctx, applicationKey(org, id))
	if err != nil || it == nil {
		return nil, err
	}
	return decodeApplication(it)
}

// Applications reads every application of the organization, in the order of
// their ids.
func (t *AccountStore) Applications(ctx context.Context, org value.ID) ([]account.Application, error) {
	var apps []account.Application
	err := t.query(ctx, partition(developerPartition(org), applicationPrefix), func(it item) (bool, error) {
		app, err := decodeApplication(it)
		if err == nil {
			apps = append(apps, *app)
		}
		return true, err
	})
	return apps, err
}

func decodeApplication(it item) (*account.Application, error) {
	var app account.Application
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &app); err != nil {
		return nil, fmt.Errorf("decode %s: %w", getString(it, attrSK), err)
	}
	return &app, nil
}

// changeAttempts bounds how often a change is computed anew because somebody
// else wrote the item meanwhile.
const changeAttempts = 8

// retry waits before a change is tried once more, or gives up.
func retry(ctx context.Context, attempt int, giveUp error) error {
	if attempt+1 == changeAttempts {
		return giveUp
	}
	if err := backOff(ctx, attempt); err != nil {
		return wrap("wait to try again", err)
	}
	return nil
}

// ChangeApplication applies change to the application and stores it when
// change reports that something differs. It returns the application as it is
// then, or nil when there is none. Change may be called again, with a fresher
// application; an error of its own ends the attempt.
func (t *AccountStore) ChangeApplication(ctx context.Context, org, id value.ID, change func(*account.Application) (bool, error)) (*account.Application, error) {
	for attempt := 0; ; attempt++ {
		it, err := t.get(ctx, applicationKey(org, id))
		if err != nil || it == nil {
			return nil, err
		}
		app, err := decodeApplication(it)
		if err != nil {
			return nil, err
		}
		if changed, err := change(app); err != nil || !changed {
			return app, err
		}
		doc, err := json.Marshal(app.Masked())
		if err != nil {
			return nil, fmt.Errorf("encode application %s: %w", id, err)
		}
		err = t.transact(ctx, "change an application", write{Update: &types.Update{
			TableName: &t.name, Key: applicationKey(org, id).item(),
			UpdateExpression:          aws.String("SET doc = :doc ADD itemVersion :one"),
			ConditionExpression:       aws.String("itemVersion = :read"),
			ExpressionAttributeValues: item{":doc": str(string(doc)), ":one": num(1), ":read": it[attrItemVersion]},
		}})
		if failed := refused(nil); !errors.As(err, &failed) {
			return app, err
		}
		if err := retry(ctx, attempt, errContended); err != nil {
			return nil, err
		}
	}
}

var errContended = fault.New(fault.Conflict, fault.CodeConflict,
	"others are changing the application at the same time: read it again and repeat the request")

// DeleteApplication deletes the application, its endpoints and the
// credentials of its keys in one transaction, so that nothing usable is ever
// left of it. It reports whether there was one. An error of check, which sees
// the application first, ends the attempt.
func (t *AccountStore) DeleteApplication(ctx context.Context, org, id value.ID, check func(*account.Application) error) (bool, error) {
	for attempt := 0; ; attempt++ {
		it, err := t.get(ctx, applicationKey(org, id))
		if err != nil || it == nil {
			return false, err
		}
		app, err := decodeApplication(it)
		if err != nil {
			return false, err
		}
		if err := check(app); err != nil {
			return false, err
		}
		writes, err := t.deletion(ctx, org, id, it)
		if err != nil {
			return false, err
		}
		err = t.transact(ctx, "delete an application", writes...)
		if err == nil {
			return true, t.deleteKeys(ctx, org, id)
		}
		if failed := refused(nil); !errors.As(err, &failed) {
			return false, err
		}
		if err := retry(ctx, attempt, errContended); err != nil {
			return false, err
		}
	}
}

// deletion lists the writes that delete an application as it was read: at
// most 2, 50 endpoints and 20 credentials, of the 100 that a transaction
// takes. A key or an endpoint that is made meanwhile changes the item's
// version and so fails the transaction.
func (t *AccountStore) deletion(ctx context.Context, org, id value.ID, it item) ([]write, error) {
	remove := func(k key) write { return write{Delete: &types.Delete{TableName: &t.name, Key: k.item()}} }
	writes := []write{{Delete: &types.Delete{
		TableName: &t.name, Key: applicationKey(org, id).item(),
		ConditionExpression:       aws.String("itemVersion = :read"),
		ExpressionAttributeValues: item{":read": it[attrItemVersion]},
	}}}
	endpoints, err := t.endpointsOf(ctx, org, id)
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		writes = append(writes, t.buryEndpoint(org, e))
	}
	for textID := range activeKeys(it) {
		writes = append(writes, remove(credentialKey(textID)))
	}
	return append(writes, write{Update: &types.Update{
		TableName: &t.name, Key: countKey(org).item(),
		UpdateExpression:          aws.String("ADD applications :app, endpoints :endpoints"),
		ExpressionAttributeValues: item{":app": num(-1), ":endpoints": num(int64(-len(endpoints)))},
	}}), nil
}

// deleteKeys removes the list of a deleted application's keys, and what is
// left of the credentials of expired and revoked ones. None of it could be
// used any more: a credential without its application is refused.
func (t *AccountStore) deleteKeys(ctx context.Context, org, application value.ID) error {
	var gone []key
	err := t.query(ctx, partition(apiKeyPartition(org, application), ""), func(it item) (bool, error) {
		k, err := decodeKey(it)
		if err == nil {
			gone = append(gone, apiKeyKey(org, application, k.ID), credentialKey(k.TextID()))
		}
		return true, err
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for _, k := range gone {
		group.Go(func() error {
			if _, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.name, Key: k.item()}); err != nil {
				return wrap("delete the keys of a deleted application", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// deletesAtOnce is how many keys of a deleted application go at a time.
const deletesAtOnce = 8
