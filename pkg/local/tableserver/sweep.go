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
	sweepPage  = 100  // expired items that a sweep looks up at a time
	scanPage   = 500  // items that one request of a sweep by scan reads
)

// SweepExpired deletes the items of a table whose TTL attribute lies at or before now, as DynamoDB's own TTL does and
// the server does not: only a Number counts, and one more than five years in the past is taken for a mistake. An item
// that was written again meanwhile stays. The client is one of this server, which deletes item by item, so that stream
// and secondary indexes follow. A call costs what it deletes, at most 1,000 items, the longest expired first; the number
// deleted tells whether there may be more. The first call for a table adds an index of the attribute to the server's
// file, during which the server cannot write: call it while the table is still empty.
func (s *Server) SweepExpired(ctx context.Context, client *dynamodb.Client, table, attribute string, now time.Time) (int, error) {
	keys, err := keyNames(ctx, client, table)
	if err != nil {
		return 0, err
	}
	expiring, err := newExpiry(s.db, table, attribute, keys)
	if err != nil {
		return 0, err
	}
	if err := expiring.index(ctx); err != nil {
		return 0, err
	}
	deleted, kept := 0, 0 // kept items may still be found, by the second in which they expire, and are not looked up again
	for deleted < sweepLimit {
		page, err := expiring.between(ctx, oldest(now), now, min(sweepPage, sweepLimit-deleted), kept)
		if err != nil {
			return deleted, err
		}
		if len(page) == 0 {
			break
		}
		for _, key := range page {
			gone, err := deleteExpired(ctx, client, table, attribute, key, now)
			if err != nil {
				return deleted, fmt.Errorf("deleting an expired item of %s: %w", table, err)
			}
			if gone {
				deleted++
			} else {
				kept++
			}
		}
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
