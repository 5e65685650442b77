package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// Attributes of an API key beside its doc. The time of the last use is apart
// from the doc, so that writing it never touches what a revocation wrote.
const (
	attrUsed    = "usedAt"
	attrRevoked = "revoked"
)

// CreateKey stores a new key of an application with its credential. It is a
// fault not_found when the application is gone, and limit_reached when it has
// [account.MaxActiveKeys] keys that are neither revoked nor expired.
func (t *AccountStore) CreateKey(ctx context.Context, org value.ID, k account.APIKey, credential account.Credential) error {
	doc, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode key %s: %w", k.ID, err)
	}
	it := apiKeyKey(org, k.ApplicationID, k.ID).item()
	it[attrType], it[attrDoc] = str(typeKey), str(string(doc))
	writes := []write{
		t.claimKey(org, k.ApplicationID, credential),
		{Put: &types.Put{TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)")}},
		{Put: &types.Put{TableName: &t.name, Item: encodeCredential(credential), ConditionExpression: aws.String("attribute_not_exists(PK)")}},
	}
	for attempt := 0; ; attempt++ {
		err = t.transact(ctx, "create an API key", writes...)
		if failed := refused(nil); !errors.As(err, &failed) || !failed.has(0) {
			return err
		}
		if err := t.dropExpiredKeys(ctx, org, k.ApplicationID); err != nil {
			return err
		}
		if err := retry(ctx, attempt, errContended); err != nil {
			return err
		}
	}
}

// claimKey takes one of the application's places for active keys.
func (t *AccountStore) claimKey(org, application value.ID, credential account.Credential) write {
	expires := int64(0)
	if credential.ExpiresAt != nil {
		expires = int64(*credential.ExpiresAt)
	}
	return write{Update: &types.Update{
		TableName: &t.name, Key: applicationKey(org, application).item(),
		UpdateExpression:         aws.String("SET #keys.#id = :expires ADD itemVersion :one"),
		ConditionExpression:      aws.String("attribute_exists(PK) AND size(#keys) < :max"),
		ExpressionAttributeNames: map[string]string{"#keys": attrKeys, "#id": credential.KeyText},
		ExpressionAttributeValues: item{
			":expires": num(expires), ":one": num(1), ":max": num(account.MaxActiveKeys),
		},
	}}
}

// dropExpiredKeys gives the places of expired keys back. It is a fault when
// the application is gone or no place is free even so.
func (t *AccountStore) dropExpiredKeys(ctx context.Context, org, application value.ID) error {
	it, err := t.get(ctx, applicationKey(org, application))
	if err != nil {
		return err
	}
	if it == nil {
		return fault.Missing("application")
	}
	active, now := activeKeys(it), t.now().UnixMilli()
	names, expression, dropped := map[string]string{"#keys": attrKeys}, "", 0
	for textID, expires := range active {
		if expires == 0 || expires > now {
			continue
		}
		name := "#k" + strconv.Itoa(dropped)
		names[name] = textID
		expression += ", #keys." + name
		dropped++
	}
	switch {
	case dropped == 0 && len(active) >= account.MaxActiveKeys:
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an application can have %d active API keys: revoke one first", account.MaxActiveKeys)
	case dropped == 0:
		return nil // one was revoked meanwhile
	}
	err = t.transact(ctx, "drop expired keys", write{Update: &types.Update{
		TableName: &t.name, Key: applicationKey(org, application).item(),
		UpdateExpression:          aws.String("REMOVE " + expression[2:] + " ADD itemVersion :one"),
		ConditionExpression:       aws.String("attribute_exists(PK)"),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: item{":one": num(1)},
	}})
	if failed := refused(nil); errors.As(err, &failed) {
		return fault.Missing("application")
	}
	return err
}

// activeKeys reads the text ids of an application's keys that are not
// revoked, with when each expires (ms, 0: never).
func activeKeys(application item) map[string]int64 {
	active := map[string]int64{}
	if m, ok := application[attrKeys].(*types.AttributeValueMemberM); ok {
		for textID := range m.Value {
			active[textID] = getNumber(m.Value, textID)
		}
	}
	return active
}

// Keys reads every key of the application, in the order of their ids.
func (t *AccountStore) Keys(ctx context.Context, org, application value.ID) ([]account.APIKey, error) {
	var keys []account.APIKey
	now := value.TimeOf(t.now())
	err := t.query(ctx, partition(apiKeyPartition(org, application), ""), func(it item) (bool, error) {
		k, err := decodeKey(it)
		if err == nil {
			keys = append(keys, k.At(now))
		}
		return true, err
	})
	return keys, err
}

func decodeKey(it item) (*account.APIKey, error) {
	var k account.APIKey
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &k); err != nil {
		return nil, fmt.Errorf("decode key %s: %w", getString(it, attrSK), err)
	}
	if used := value.Time(getNumber(it, attrUsed)); used != 0 {
		k.LastUsedAt = &used
	}
	return &k, nil
}

// RevokeKey revokes a key and returns it as it is then, or nil when the
// application has none with the id. A key that is revoked already stays as
// it is.
func (t *AccountStore) RevokeKey(ctx context.Context, org, application, id value.ID) (*account.APIKey, error) {
	for attempt := 0; ; attempt++ {
		it, err := t.get(ctx, apiKeyKey(org, application, id))
		if err != nil || it == nil {
			return nil, err
		}
		k, err := decodeKey(it)
		if err != nil {
			return nil, err
		}
		if !k.Revoke(value.TimeOf(t.now())) {
			return k, nil
		}
		writes, err := t.revocation(org, application, k)
		if err != nil {
			return nil, err
		}
		err = t.transact(ctx, "revoke an API key", writes...)
		failed := refused(nil)
		switch {
		case err == nil:
			return k, nil
		case !errors.As(err, &failed):
			return nil, err
		case failed.has(0):
			return nil, nil // the application was deleted meanwhile
		}
		if err := retry(ctx, attempt, errContended); err != nil {
			return nil, err
		}
	}
}

func (t *AccountStore) revocation(org, application value.ID, k *account.APIKey) ([]write, error) {
	stored := *k
	stored.LastUsedAt = nil
	doc, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode key %s: %w", k.ID, err)
	}
	return []write{
		{Update: &types.Update{
			TableName: &t.name, Key: applicationKey(org, application).item(),
			UpdateExpression:          aws.String("REMOVE #keys.#id ADD itemVersion :one"),
			ConditionExpression:       aws.String("attribute_exists(PK)"),
			ExpressionAttributeNames:  map[string]string{"#keys": attrKeys, "#id": k.TextID()},
			ExpressionAttributeValues: item{":one": num(1)},
		}},
		{Update: &types.Update{
			TableName: &t.name, Key: apiKeyKey(org, application, k.ID).item(),
			UpdateExpression:          aws.String("SET doc = :doc, revoked = :true"),
			ConditionExpression:       aws.String("attribute_exists(PK) AND attribute_not_exists(revoked)"),
			ExpressionAttributeValues: item{":doc": str(string(doc)), ":true": boolean(true)},
		}},
		{Update: &types.Update{
			TableName: &t.name, Key: credentialKey(k.TextID()).item(),
			UpdateExpression:          aws.String("SET revoked = :true"),
			ConditionExpression:       aws.String("attribute_exists(PK)"),
			ExpressionAttributeValues: item{":true": boolean(true)},
		}},
	}, nil
}

// TouchKey writes that the key was used, unless that is written already with
// a time less than the interval ago. A key that is gone is no error.
func (t *AccountStore) TouchKey(ctx context.Context, org, application, id value.ID, interval time.Duration) error {
	now := t.now()
	_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: apiKeyKey(org, application, id).item(),
		UpdateExpression:    aws.String("SET usedAt = :now"),
		ConditionExpression: aws.String("attribute_exists(PK) AND (attribute_not_exists(usedAt) OR usedAt <= :before)"),
		ExpressionAttributeValues: item{
			":now": num(now.UnixMilli()), ":before": num(now.Add(-interval).UnixMilli()),
		},
	})
	if _, failed := conditionFailed(err); failed {
		return nil
	}
	if err != nil {
		return wrap("write a key's last use", err)
	}
	return nil
}
