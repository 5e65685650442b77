package tableserver

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// SweepByScan does what SweepExpired does, on a server of which there is only the API. It reads the whole table.
func SweepByScan(ctx context.Context, client *dynamodb.Client, table, attribute string, now time.Time) (int, error) {
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
			":oldest": epoch(oldest(now)),
			":now":    epoch(now),
		},
		Limit: aws.Int32(scanPage),
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
