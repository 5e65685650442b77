package template

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json/jsontext"
)

// Table is the DynamoDB table.
type Table struct {
	LogicalID string
	StreamARN string                    // of this table, or of the restored one in its place
	Create    dynamodb.CreateTableInput // without its name
	TTL       string                    // attribute with the time of expiry, "" for none
}

// table reads the table, whose properties are named as the API's parameters.
func (m *Model) table(r *resolver, id string, properties jsontext.Value) (err error) {
	var declared struct {
		AttributeDefinitions    []types.AttributeDefinition
		KeySchema               []types.KeySchemaElement
		GlobalSecondaryIndexes  []types.GlobalSecondaryIndex
		OnDemandThroughput      *types.OnDemandThroughput
		StreamSpecification     types.StreamSpecification
		TimeToLiveSpecification struct{ AttributeName string }
	}
	if err := decode(properties, &declared); err != nil {
		return err
	}
	declared.StreamSpecification.StreamEnabled = aws.Bool(true)
	m.Table = Table{LogicalID: id, TTL: declared.TimeToLiveSpecification.AttributeName, Create: dynamodb.CreateTableInput{
		BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: declared.AttributeDefinitions, KeySchema: declared.KeySchema,
		GlobalSecondaryIndexes: declared.GlobalSecondaryIndexes, OnDemandThroughput: declared.OnDemandThroughput,
		StreamSpecification: &declared.StreamSpecification,
	}}
	m.Table.StreamARN, err = r.sub("${TableStreamArn}")
	return err
}

// PartitionKey is the name of the attribute by which items are divided.
func (t *Table) PartitionKey() string { return *t.Create.KeySchema[0].AttributeName }

// Queue is an SQS standard queue.
type Queue struct {
	LogicalID string
	ARN       string
	// Attributes are the declared ones by SQS's names, without the redrive policy.
	Attributes      map[string]string
	DeadLetterQueue string // logical id, "" for none
	MaxReceiveCount int    // receives after which a message moves there
}

// queue reads a queue, whose properties are named as SQS's attributes.
func (m *Model) queue(r *resolver, id string, properties jsontext.Value) error {
	var declared struct {
		RedrivePolicy struct {
			DeadLetterTargetARN string `json:"deadLetterTargetArn"`
			MaxReceiveCount     int    `json:"maxReceiveCount"`
		}
		Attributes map[string]string `json:",embed"`
	}
	if err := decode(properties, &declared); err != nil {
		return err
	}
	q := Queue{LogicalID: id, Attributes: declared.Attributes, MaxReceiveCount: declared.RedrivePolicy.MaxReceiveCount}
	q.DeadLetterQueue = strings.TrimSuffix(declared.RedrivePolicy.DeadLetterTargetARN, ".Arn")
	q.ARN = strings.Join([]string{"arn", r.values["AWS::Partition"], "sqs", r.values["AWS::Region"], r.values["AWS::AccountId"], id}, ":")
	m.Queues[id] = q
	return nil
}
