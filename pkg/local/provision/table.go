// Package provision makes what the template declares on local servers: the table with its index, stream and time to
// live, and the queues with their redrive. Doing it again changes nothing. What only AWS has (point-in-time recovery,
// alarms, roles) is left out.
package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/local/template"
)

// Table makes the table under the name, unless it is there, and returns the ARN of its stream, "" when it has
// none.
func Table(ctx context.Context, client *dynamodb.Client, t template.Table, name string) (streamARN string, err error) {
	create := t.Create
	create.TableName = &name
	_, err = client.CreateTable(ctx, &create)
	exists := (*types.ResourceInUseException)(nil)
	if err == nil && t.TTL != "" {
		_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.TTL, Enabled: aws.Bool(true)},
		})
	}
	if err != nil && !errors.As(err, &exists) {
		return "", fmt.Errorf("create the table %s: %w", name, err)
	}
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return "", fmt.Errorf("describe the table %s: %w", name, err)
	}
	return aws.ToString(described.Table.LatestStreamArn), nil
}
