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
	sweepPage  = 500  // items that one request of a sweep reads
)

// SweepExpired deletes the items of a table whose TTL attribute lies at or before now, as DynamoDB's own TTL does and
// the local server does not: only a Number counts, and one more than five years in the past is taken for a mistake. An
// item that was written again meanwhile stays. It reads the whole table and deletes at most 1,000 items in a call; the
// number deleted tells whether there may be more.
func SweepExpired(ctx context.Context, client *dynamodb.Client, table, attribute string, now time.Time) (int, error) {
	keys, err := keyNames(ctx, client, table)
	if err != nil {
		return 0, err
	}
	names := map[string]string{"#ttl": attribute}
	projection := ""
	for i, key := range keys {
		name := "#k" + strconv.Itoa(i)
		names[name] = key
		projection += "," + name
	}
	scan := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
		TableName:                aws.String(table),
		FilterExpression:         aws.String("attribute_type(#ttl, :number) AND #ttl BETWEEN :oldest AND :now"),
		ProjectionExpression:     aws.String(projection[1:]),
		ExpressionAttributeNames: names,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":number": &types.AttributeValueMemberS{Value: "N"},
			":oldest": epoch(now.AddDate(-5, 0, 0)),
			":now":    epoch(now),
		},
		Limit: aws.Int32(sweepPage),
	})
	deleted := 0
	for scan.HasMorePages() {
		page, err := scan.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("looking for expired items in %s: %w", table, err)
		}
		for _, key := range page.Items {
			gone, err := deleteExpired(ctx, client, table, attribute, key, now)
			if err != nil {
				return deleted, fmt.Errorf("deleting an expired item of %s: %w", table, err)
			}
			if gone {
				deleted++
			}
			if deleted == sweepLimit {
				return deleted, nil
			}
		}
	}
	return deleted, nil
}

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
