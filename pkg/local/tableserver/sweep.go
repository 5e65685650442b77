package tableserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/pause"
)

const (
	sweepLimit = 1000 // deletions in one call
	// sweepShare bounds the time in which the server reads for a sweep, and other requests wait: one in so many.
	sweepShare = 50
)

type item = map[string]types.AttributeValue

// Sweep deletes the items of the service's table whose TTL attribute lies at or before now, so that stream and secondary
// indexes follow, as DynamoDB's own TTL does: only a Number counts, and one more than five years in the past is taken for
// a mistake. An item that was written again meanwhile stays. A call reads the whole table and deletes at most 1,000 items:
// if it deleted as many, there may be more. It does nothing on DynamoDB Local and for tables of other names.
func (s *Server) Sweep(ctx context.Context, table, attribute string, now time.Time) (deleted int, err error) {
	if s.control == nil || table != serviceTable {
		return 0, nil
	}
	for after := "0"; ; {
		asked := time.Now()
		keys, last, err := s.expired(ctx, attribute, now, after)
		if err != nil {
			return deleted, fmt.Errorf("looking for expired items: %w", err)
		}
		took := time.Since(asked)
		for _, key := range keys {
			gone, err := s.deleteExpired(ctx, key, attribute, now)
			if err != nil {
				return deleted, fmt.Errorf("deleting an expired item: %w", err)
			}
			if gone {
				deleted++
			}
			if deleted == sweepLimit {
				return deleted, nil
			}
		}
		if after = last; after == "0" {
			return deleted, nil
		}
		if err := pause.For(ctx, sweepShare*took); err != nil {
			return deleted, err
		}
	}
}

// expired asks the trigger of the file for the keys of expired items among the next rows, and for the last of these rows.
func (s *Server) expired(ctx context.Context, attribute string, now time.Time, after string) (keys []item, last string, err error) {
	order := item{
		"table":     &types.AttributeValueMemberS{Value: serviceTable},
		"attribute": &types.AttributeValueMemberS{Value: attribute},
		"oldest":    epoch(now.AddDate(-5, 0, 0)), "now": epoch(now),
		"after": &types.AttributeValueMemberN{Value: after},
	}
	if _, err := s.control.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(expiryControl), Item: order}); err != nil {
		return nil, "", err
	}
	out, err := s.control.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(expiryControl), Key: item{"table": order["table"]}})
	if err != nil {
		return nil, "", err
	}
	found, isList := out.Item["found"].(*types.AttributeValueMemberL)
	end, isNumber := out.Item["last"].(*types.AttributeValueMemberN)
	if !isList || !isNumber {
		return nil, "", fmt.Errorf("%s has no answer", expiryControl)
	}
	for _, one := range found.Value {
		if key, isMap := one.(*types.AttributeValueMemberM); isMap {
			keys = append(keys, key.Value)
		}
	}
	return keys, end.Value, nil
}

func (s *Server) deleteExpired(ctx context.Context, key item, attribute string, now time.Time) (bool, error) {
	_, err := s.control.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 aws.String(serviceTable),
		Key:                       key,
		ConditionExpression:       aws.String("#ttl <= :now"),
		ExpressionAttributeNames:  map[string]string{"#ttl": attribute},
		ExpressionAttributeValues: item{":now": epoch(now)},
	})
	if changed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &changed) {
		return false, nil
	}
	return err == nil, err
}

func epoch(t time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.Unix(), 10)}
}
