package queueserver

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxMessage    = 1 << 20      // bytes of a message, and of a batch
	maxVisibility = 12 * 60 * 60 // seconds
	maxReceives   = 1000
)

// The attributes that a queue can be given, by their names in the protocol.
const (
	attrVisibility = "VisibilityTimeout"
	attrDelay      = "DelaySeconds"
	attrMaxSize    = "MaximumMessageSize"
	attrRetention  = "MessageRetentionPeriod"
	attrWait       = "ReceiveMessageWaitTimeSeconds"
	attrRedrive    = "RedrivePolicy"
)

// numbers has the ranges and the defaults of the numeric attributes.
var numbers = map[string]struct{ min, max, fallback int64 }{
	attrVisibility: {0, maxVisibility, 30},
	attrDelay:      {0, 900, 0},
	attrMaxSize:    {1024, maxMessage, maxMessage},
	attrRetention:  {60, 14 * 24 * 60 * 60, 4 * 24 * 60 * 60},
	attrWait:       {0, 20, 0},
}

// settings are a queue's attributes, parsed.
type settings struct {
	visibility, delay, retention, wait int64 // milliseconds
	maxSize                            int   // bytes
	redrive                            *redrivePolicy
}

// redrivePolicy sends a message that was received maxReceives times, at its next receive, to the queue of that ARN.
type redrivePolicy struct {
	target      string
	maxReceives int
}

// settingsOf checks a queue's attributes and returns their meaning.
func settingsOf(attributes map[string]string) (set settings, err error) {
	for name := range attributes {
		if _, known := numbers[name]; !known && name != attrRedrive {
			return set, &types.InvalidAttributeName{Message: aws.String("Unknown Attribute " + name + ".")}
		}
	}
	number := func(name string, unit int64) int64 {
		v, failed := strconv.ParseInt(effective(attributes, name), 10, 64)
		if failed != nil || v < numbers[name].min || v > numbers[name].max {
			err = &types.InvalidAttributeValue{Message: aws.String("Invalid value for the parameter " + name + ".")}
		}
		return v * unit
	}
	const second = 1000
	set.visibility, set.delay = number(attrVisibility, second), number(attrDelay, second)
	set.retention, set.wait = number(attrRetention, second), number(attrWait, second)
	set.maxSize = int(number(attrMaxSize, 1))
	if policy := attributes[attrRedrive]; policy != "" && err == nil {
		set.redrive, err = parseRedrive(policy)
	}
	return set, err
}

// effective returns an attribute of a queue, the default when it was not set.
func effective(attributes map[string]string, name string) string {
	if v, ok := attributes[name]; ok || name == attrRedrive {
		return v
	}
	return strconv.FormatInt(numbers[name].fallback, 10)
}

func parseRedrive(value string) (*redrivePolicy, error) {
	var raw struct {
		Target string         `json:"deadLetterTargetArn"`
		Max    jsontext.Value `json:"maxReceiveCount"`
	}
	err := json.Unmarshal([]byte(value), &raw)
	// Both 5 and "5" are in use.
	count, notNumber := strconv.Atoi(strings.Trim(string(raw.Max), `"`))
	if err != nil || notNumber != nil || count < 1 || count > maxReceives {
		return nil, invalid("Value %s for parameter %s is invalid. Reason: It needs a deadLetterTargetArn and a maxReceiveCount from 1 to %d.", value, attrRedrive, maxReceives)
	}
	return &redrivePolicy{target: raw.Target, maxReceives: count}, nil
}
