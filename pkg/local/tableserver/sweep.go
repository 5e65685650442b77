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
)

const (
	sweepLimit = 1000 // deletions in one call
	sweepPage  = 100  // expired items that a sweep reads before it deletes them
	scanPage   = 500  // items that one request of a sweep by scan reads
)

// SweepExpired deletes the items of a table whose TTL attribute lies at or before now, as DynamoDB's own TTL does and
// the server does not: only a Number counts, and one more than five years in the past is taken for a mistake. An item
// that was written again meanwhile stays. It finds them in the server's file, all of which it reads, and the server,
// whose client it is given, only deletes them, so that stream and secondary indexes follow. A call deletes at most 1,000
// items; the number deleted tells whether there may be more.
func (s *Server) SweepExpired(ctx context.Context, client *dynamodb.Client, table, attribute string, now time.Time) (int, error) {
	keys, err := keyNames(ctx, client, table)
	if err != nil {
		return 0, err
	}
	expiring, err := newExpiry(s.db, table, attribute, keys)
	if err != nil {
		return 0, err
	}
	deleted, row := 0, int64(0)
	for deleted < sweepLimit {
		limit := min(sweepPage, sweepLimit-deleted)
		page, last, err := expiring.between(ctx, oldest(now), now, row, limit)
		if err != nil {
			return deleted, err
		}
		for _, key := range page {
			gone, err := deleteExpired(ctx, client, table, attribute, key, now)
			if err != nil {
				return deleted, fmt.Errorf("deleting an expired item of %s: %w", table, err)
			}
			if gone {
				deleted++
			}
		}
		if len(page) < limit {
			break
		}
		row = last
	}
	return deleted, nil
}

// oldest is the time before which a TTL attribute is taken for a mistake.
func oldest(now time.Time) time.Time { return now.AddDate(-5, 0, 0) }

func keyNames(ctx context.Context, client *dynamodb.Client, table string) ([]string, error) {
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		return nil, fmt.Errorf("reading the key of table %s: %w", table, err)
	}
	var keys []string
	for _, element := range described.Table.KeySchema {
		keys = append(keys, aws.ToString(element.AttributeName))
	}
	return keys, nil
}

func deleteExpired(ctx context.Context, client *dynamodb.Client, table, attribute string, key map[string]types.AttributeValue, now time.Time) (bool, error) {
	_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 aws.String(table),
		Key:                       key,
		ConditionExpression:       aws.String("#ttl <= :now"),
		ExpressionAttributeNames:  map[string]string{"#ttl": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":now": epoch(now)},
	})
	if changed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &changed) {
		return false, nil
	}
	return err == nil, err
}

func epoch(t time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.Unix(), 10)}
}
