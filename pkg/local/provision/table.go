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

// Table makes the table under the name, unless it is there, and returns the ARN of its stream, "" when the template
// declares none.
func Table(ctx context.Context, client *dynamodb.Client, t template.Table, name string) (streamARN string, err error) {
	_, err = client.CreateTable(ctx, tableInput(t, name))
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

func tableInput(t template.Table, name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema(t.Key)}
	for _, a := range t.Attributes {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(a.Name), AttributeType: types.ScalarAttributeType(a.Type),
		})
	}
	for _, index := range t.Indexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: keySchema(index.Key),
			Projection: &types.Projection{ProjectionType: types.ProjectionType(index.Projection)},
		})
	}
	if t.StreamView != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(t.StreamView)}
	}
	return in
}

func keySchema(k template.Key) []types.KeySchemaElement {
	schema := []types.KeySchemaElement{{AttributeName: aws.String(k.Partition), KeyType: types.KeyTypeHash}}
	if k.Sort != "" {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(k.Sort), KeyType: types.KeyTypeRange})
	}
	return schema
}
