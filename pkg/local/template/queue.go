package template

import "time"

// Queue is an SQS standard queue.
type Queue struct {
	LogicalID         string
	VisibilityTimeout time.Duration
	Retention         time.Duration
	Delay             time.Duration
	ReceiveWait       time.Duration
	MaxMessageSize    int    // in bytes
	DeadLetterQueue   string // logical id, "" for none
	MaxReceiveCount   int    // receives after which a message moves there
}

func (x *extractor) queue(id string, properties *node) Queue {
	const ( // SQS's own
		visibility = 30
		retention  = 345600
		size       = 1048576
	)
	redrive := properties.get("RedrivePolicy")
	return Queue{
		LogicalID:         id,
		VisibilityTimeout: x.seconds(properties.get("VisibilityTimeout"), visibility),
		Retention:         x.seconds(properties.get("MessageRetentionPeriod"), retention),
		Delay:             x.seconds(properties.get("DelaySeconds"), 0),
		ReceiveWait:       x.seconds(properties.get("ReceiveMessageWaitTimeSeconds"), 0),
		MaxMessageSize:    x.integer(properties.get("MaximumMessageSize"), size),
		DeadLetterQueue:   redrive.get("deadLetterTargetArn").target(),
		MaxReceiveCount:   x.integer(redrive.get("maxReceiveCount"), 0),
	}
}
