package template

import (
	"strings"
	"time"
)

// Queue is an SQS standard queue.
type Queue struct {
	LogicalID         string
	ARN               string
	VisibilityTimeout time.Duration
	Retention         time.Duration
	Delay             time.Duration
	ReceiveWait       time.Duration
	MaxMessageSize    int    // in bytes
	DeadLetterQueue   string // logical id, "" for none
	MaxReceiveCount   int    // receives after which a message moves there
}

// queue reads a queue; the defaults are SQS's own.
func (x *extractor) queue(id string, properties *node) Queue {
	redrive := properties.get("RedrivePolicy")
	return Queue{
		LogicalID:         id,
		ARN:               x.queueARN(id),
		VisibilityTimeout: x.seconds(properties.get("VisibilityTimeout"), 30),
		Retention:         x.seconds(properties.get("MessageRetentionPeriod"), 4*24*60*60),
		Delay:             x.seconds(properties.get("DelaySeconds"), 0),
		ReceiveWait:       x.seconds(properties.get("ReceiveMessageWaitTimeSeconds"), 0),
		MaxMessageSize:    x.integer(properties.get("MaximumMessageSize"), 1<<20),
		DeadLetterQueue:   redrive.get("deadLetterTargetArn").target(),
		MaxReceiveCount:   x.integer(redrive.get("maxReceiveCount"), 0),
	}
}

func (x *extractor) queueARN(id string) string {
	return strings.Join([]string{"arn", x.values["AWS::Partition"], "sqs", x.values["AWS::Region"], x.values["AWS::AccountId"], x.values[id+".QueueName"]}, ":")
}
