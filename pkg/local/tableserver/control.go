package tableserver

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// Triggers on the items of these tables of empty.sql do in the file what the server's API cannot. expiryControl
	// serves the service's table alone.
	streamControl, expiryControl = "stream-control", "expiry-control"
	serviceTable                 = "commerce"
	// controlDamaged is what the trigger that checks the file says of a damaged one.
	controlDamaged = "quick_check failed"
	// maxChecked bounds the file that is checked at the start, in bytes: the check takes a second for about 100 MB.
	maxChecked = 64 << 20
)

// openControl checks the file through the control table.
func (s *Server) openControl(ctx context.Context, size int64) error {
	s.control = s.client()
	var err error
	if size <= maxChecked {
		_, err = s.control.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(streamControl), Item: item{
			"table": &types.AttributeValueMemberS{Value: "-"}, "check": &types.AttributeValueMemberBOOL{Value: true},
		}})
	} else {
		_, err = s.control.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(streamControl)})
	}
	if err != nil {
		return fmt.Errorf("checking the table file: %w", err)
	}
	return nil
}

// Trim deletes the oldest records of a table's stream, up to and including the sequence number that every consumer is
// past, at most 5,000 in a call so that writes hardly wait. The newest record stays whatever the number: the server
// derives the next sequence number from it. On DynamoDB Local it does nothing.
func (s *Server) Trim(ctx context.Context, table, sequenceNumber string) error {
	if _, err := strconv.ParseInt(sequenceNumber, 10, 64); err != nil {
		return fmt.Errorf("trimming the stream of %s: %w", table, err)
	}
	if s.control == nil {
		return nil
	}
	_, err := s.control.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(streamControl), Item: item{
		"table": &types.AttributeValueMemberS{Value: table}, "past": &types.AttributeValueMemberN{Value: sequenceNumber},
	}})
	if err != nil {
		return fmt.Errorf("trimming the stream of %s up to %s: %w", table, sequenceNumber, err)
	}
	return nil
}
