package template

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Table is the DynamoDB table.
type Table struct {
	LogicalID  string
	StreamARN  string      // of this table, or of the restored one in its place
	Attributes []Attribute // of the keys
	Key        Key
	Indexes    []Index
	StreamView string // such as NEW_AND_OLD_IMAGES, "" without a stream
	TTL        string // attribute with the time of expiry, "" for none
}

// Attribute is a key attribute and its type: S, N or B.
type Attribute struct {
	Name string `json:"AttributeName"`
	Type string `json:"AttributeType"`
}

// Key names the key attributes; Sort is "" without one.
type Key struct {
	Partition string
	Sort      string
}

// Index is a global secondary index.
type Index struct {
	Name       string
	Key        Key
	Projection string // KEYS_ONLY or ALL
}

type keySchema []struct{ AttributeName, KeyType string }

func (s keySchema) key() (key Key) {
	for _, element := range s {
		if element.KeyType == "HASH" {
			key.Partition = element.AttributeName
		} else {
			key.Sort = element.AttributeName
		}
	}
	return key
}

func (m *Model) table(r *resolver, id string, properties jsontext.Value) error {
	var declared struct {
		AttributeDefinitions   []Attribute
		KeySchema              keySchema
		GlobalSecondaryIndexes []struct {
			IndexName  string
			KeySchema  keySchema
			Projection struct{ ProjectionType string }
		}
		StreamSpecification     struct{ StreamViewType string }
		TimeToLiveSpecification struct{ AttributeName string }
	}
	if err := decode(properties, &declared); err != nil {
		return err
	}
	stream, err := r.sub("${TableStreamArn}")
	if err != nil {
		return err
	}
	m.Table = Table{
		LogicalID: id, StreamARN: stream, Attributes: declared.AttributeDefinitions, Key: declared.KeySchema.key(),
		StreamView: declared.StreamSpecification.StreamViewType, TTL: declared.TimeToLiveSpecification.AttributeName,
	}
	for _, index := range declared.GlobalSecondaryIndexes {
		m.Table.Indexes = append(m.Table.Indexes, Index{Name: index.IndexName, Key: index.KeySchema.key(), Projection: index.Projection.ProjectionType})
	}
	return nil
}

// Queue is an SQS standard queue.
type Queue struct {
	LogicalID         string `json:"-"`
	ARN               string `json:"-"`
	VisibilityTimeout time.Duration
	Retention         time.Duration `json:"MessageRetentionPeriod"`
	Delay             time.Duration `json:"DelaySeconds"`
	ReceiveWait       time.Duration `json:"ReceiveMessageWaitTimeSeconds"`
	MaxMessageSize    int           `json:"MaximumMessageSize"` // in bytes
	DeadLetterQueue   string        `json:"-"`                  // logical id, "" for none
	MaxReceiveCount   int           `json:"-"`                  // receives after which a message moves there
}

// queue reads a queue; the defaults are SQS's own.
func (m *Model) queue(r *resolver, id string, properties jsontext.Value) error {
	declared := struct {
		Queue
		RedrivePolicy struct {
			DeadLetterTargetARN string `json:"deadLetterTargetArn"`
			MaxReceiveCount     int    `json:"maxReceiveCount"`
		}
	}{Queue: Queue{LogicalID: id, VisibilityTimeout: 30 * time.Second, Retention: 4 * 24 * time.Hour, MaxMessageSize: 1 << 20}}
	if err := decode(properties, &declared); err != nil {
		return err
	}
	q := declared.Queue
	q.DeadLetterQueue = strings.TrimSuffix(declared.RedrivePolicy.DeadLetterTargetARN, ".Arn")
	q.MaxReceiveCount = declared.RedrivePolicy.MaxReceiveCount
	q.ARN = strings.Join([]string{"arn", r.values["AWS::Partition"], "sqs", r.values["AWS::Region"], r.values["AWS::AccountId"], id}, ":")
	m.Queues[id] = q
	return nil
}
