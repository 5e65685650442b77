package tableserver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/pause"
)

const (
	sweepLimit = 1000 // deletions in one call
	scanPage   = 500  // items that one request reads, for which other requests wait
)

type item = map[string]types.AttributeValue

// A Sweeper deletes expired items, as DynamoDB's own TTL does and local servers do not: only a Number counts, and one
// more than five years in the past is taken for a mistake.
type Sweeper struct {
	Server           *Server // nil for one that this package did not start
	Client           *dynamodb.Client
	Table, Attribute string
	// Share bounds the time in which the server reads for a sweep, and other requests wait: one in so many. 0: no bound.
	Share int
}

// Sweep deletes the items whose TTL attribute lies at or before now, so that stream and secondary indexes follow. An
// item that was written again meanwhile stays. A call reads the whole table and deletes at most 1,000 items; the number
// deleted tells whether there may be more.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (deleted int, err error) {
	expired := s.scan
	if s.Server != nil && s.Server.control != nil && s.Table == serviceTable {
		expired = s.find
	}
	for key, err := range expired(ctx, now) {
		if err != nil {
			return deleted, fmt.Errorf("looking for expired items in %s: %w", s.Table, err)
		}
		gone, err := s.deleteExpired(ctx, key, now)
		if err != nil {
			return deleted, fmt.Errorf("deleting an expired item of %s: %w", s.Table, err)
		}
		if gone {
			deleted++
		}
		if deleted == sweepLimit {
			break
		}
	}
	return deleted, nil
}

// find yields the keys of expired items that a trigger of the server's file finds.
func (s *Sweeper) find(ctx context.Context, now time.Time) iter.Seq2[item, error] {
	order := item{
		"table":     &types.AttributeValueMemberS{Value: s.Table},
		"attribute": &types.AttributeValueMemberS{Value: s.Attribute},
		"oldest":    epoch(oldest(now)), "now": epoch(now),
	}
	control := s.Server.control
	return func(yield func(item, error) bool) {
		for after := "0"; ; {
			asked := time.Now()
			order["after"] = &types.AttributeValueMemberN{Value: after}
			_, err := control.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(expiryControl), Item: order})
			if err != nil {
				yield(nil, err)
				return
			}
			out, err := control.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(expiryControl), Key: item{"table": order["table"]}})
			if err != nil {
				yield(nil, err)
				return
			}
			found, isList := out.Item["found"].(*types.AttributeValueMemberL)
			last, isNumber := out.Item["last"].(*types.AttributeValueMemberN)
			if !isList || !isNumber {
				yield(nil, fmt.Errorf("%s has no answer", expiryControl))
				return
			}
			took := time.Since(asked)
			for _, one := range found.Value {
				if key, isMap := one.(*types.AttributeValueMemberM); isMap && !yield(key.Value, nil) {
					return
				}
			}
			if after = last.Value; after == "0" {
				return
			}
			if err := s.pause(ctx, took); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// scan yields the keys of expired items on a server of which there is only the API.
func (s *Sweeper) scan(ctx context.Context, now time.Time) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		described, err := s.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.Table})
		if err != nil {
			yield(nil, err)
			return
		}
		names := map[string]string{"#ttl": s.Attribute}
		projection := ""
		for i, element := range described.Table.KeySchema {
			name := "#k" + strconv.Itoa(i)
			names[name] = aws.ToString(element.AttributeName)
			projection += "," + name
		}
		pages := dynamodb.NewScanPaginator(s.Client, &dynamodb.ScanInput{
			TableName:                &s.Table,
			FilterExpression:         aws.String("attribute_type(#ttl, :number) AND #ttl BETWEEN :oldest AND :now"),
			ProjectionExpression:     aws.String(projection[1:]),
			ExpressionAttributeNames: names,
			ExpressionAttributeValues: item{
				":number": &types.AttributeValueMemberS{Value: "N"}, ":oldest": epoch(oldest(now)), ":now": epoch(now),
			},
			Limit: aws.Int32(scanPage),
		})
		for pages.HasMorePages() {
			asked := time.Now()
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			took := time.Since(asked)
			for _, key := range page.Items {
				if !yield(key, nil) {
					return
				}
			}
			if err := s.pause(ctx, took); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// pause lets other requests pass after a look at the table that took the time.
func (s *Sweeper) pause(ctx context.Context, took time.Duration) error {
	return pause.For(ctx, time.Duration(s.Share)*took)
}

func (s *Sweeper) deleteExpired(ctx context.Context, key item, now time.Time) (bool, error) {
	_, err := s.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &s.Table,
		Key:                       key,
		ConditionExpression:       aws.String("#ttl <= :now"),
		ExpressionAttributeNames:  map[string]string{"#ttl": s.Attribute},
		ExpressionAttributeValues: item{":now": epoch(now)},
	})
	if changed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &changed) {
		return false, nil
	}
	return err == nil, err
}

// oldest is the time before which a TTL attribute is taken for a mistake.
func oldest(now time.Time) time.Time { return now.AddDate(-5, 0, 0) }

func epoch(t time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.Unix(), 10)}
}
