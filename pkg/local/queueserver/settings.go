package queueserver

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The attributes that a queue can be given, by their names in the protocol.
const (
	attrVisibility   = "VisibilityTimeout"
	attrDelay        = "DelaySeconds"
	attrMaxSize      = "MaximumMessageSize"
	attrRetention    = "MessageRetentionPeriod"
	attrWait         = "ReceiveMessageWaitTimeSeconds"
	attrRedrive      = "RedrivePolicy"
	attrRedriveAllow = "RedriveAllowPolicy"
	attrPolicy       = "Policy"
	attrKMSKey       = "KmsMasterKeyId"
	attrKMSReuse     = "KmsDataKeyReusePeriodSeconds"
	attrManagedSSE   = "SqsManagedSseEnabled"
	attrFIFO         = "FifoQueue"
)

// The attributes that a queue has by itself.
const (
	attrARN      = "QueueArn"
	attrCreated  = "CreatedTimestamp"
	attrModified = "LastModifiedTimestamp"
	attrReady    = "ApproximateNumberOfMessages"
	attrInFlight = "ApproximateNumberOfMessagesNotVisible"
	attrDelayed  = "ApproximateNumberOfMessagesDelayed"
	// attrOldest is a metric of CloudWatch and no attribute in Amazon SQS: only a request that names it gets it.
	attrOldest = "ApproximateAgeOfOldestMessage"
)

const (
	maxMessage        = 1 << 20      // bytes of a message, and of a batch
	maxVisibility     = 12 * 60 * 60 // seconds
	maxReceiveCeiling = 1000
)

// number is the range and the default of a numeric attribute.
type number struct {
	min, max, fallback int64
}

var numbers = map[string]number{
	attrVisibility: {0, maxVisibility, 30},
	attrDelay:      {0, 900, 0},
	attrMaxSize:    {1024, maxMessage, maxMessage},
	attrRetention:  {60, 14 * 24 * 60 * 60, 4 * 24 * 60 * 60},
	attrWait:       {0, 20, 0},
	attrKMSReuse:   {60, 24 * 60 * 60, 300},
}

// settings are a queue's attributes, parsed.
type settings struct {
	visibility, delay, retention, wait int64 // milliseconds
	maxSize                            int   // bytes
	redrive                            *redrivePolicy
	allow                              redriveAllowPolicy
}

// redrivePolicy sends a message that was received maxReceives times, at its next receive, to the queue of that ARN.
type redrivePolicy struct {
	target      string
	maxReceives int
}

// redriveAllowPolicy says which queues may use this one for their dead letters.
type redriveAllowPolicy struct {
	Permission string   `json:"redrivePermission"` // allowAll (also when empty), denyAll or byQueue
	Sources    []string `json:"sourceQueueArns"`
}

func (p *redriveAllowPolicy) allows(source string) bool {
	switch p.Permission {
	case "denyAll":
		return false
	case "byQueue":
		return slices.Contains(p.Sources, source)
	}
	return true
}

// settingsOf checks a queue's attributes and returns their meaning.
func settingsOf(attributes map[string]string) (settings, error) {
	var set settings
	for name, value := range attributes {
		if err := checkAttribute(name, value); err != nil {
			return set, err
		}
	}
	const second = 1000
	set.visibility = numeric(attributes, attrVisibility) * second
	set.delay = numeric(attributes, attrDelay) * second
	set.retention = numeric(attributes, attrRetention) * second
	set.wait = numeric(attributes, attrWait) * second
	set.maxSize = int(numeric(attributes, attrMaxSize))
	var err error
	if policy := attributes[attrRedrive]; policy != "" {
		if set.redrive, err = parseRedrive(policy); err != nil {
			return set, err
		}
	}
	if policy := attributes[attrRedriveAllow]; policy != "" {
		set.allow, err = parseRedriveAllow(policy)
	}
	return set, err
}

// numeric returns a numeric attribute that was checked, or its default.
func numeric(attributes map[string]string, name string) int64 {
	if v, err := strconv.ParseInt(attributes[name], 10, 64); err == nil {
		return v
	}
	return numbers[name].fallback
}

// checkAttribute checks one attribute by itself.
func checkAttribute(name, value string) error {
	valid := true
	switch n, numeric := numbers[name]; {
	case numeric:
		v, err := strconv.ParseInt(value, 10, 64)
		valid = err == nil && v >= n.min && v <= n.max
	case name == attrRedrive, name == attrRedriveAllow, name == attrKMSKey:
	case name == attrPolicy:
		valid = value == "" || jsontext.Value(value).IsValid()
	case name == attrManagedSSE:
		valid = value == "true" || value == "false"
	case name == attrFIFO:
		return errFIFO()
	default:
		return errAttributeName(name)
	}
	if !valid {
		return errAttributeValue(name)
	}
	return nil
}

func parseRedrive(value string) (*redrivePolicy, error) {
	var raw struct {
		Target string         `json:"deadLetterTargetArn"`
		Max    jsontext.Value `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(value), &raw); err != nil {
		return nil, errValue(value, attrRedrive, "Redrive policy is not a valid JSON map.")
	}
	if !strings.HasPrefix(raw.Target, "arn:") {
		return nil, errValue(value, attrRedrive, "Invalid value for deadLetterTargetArn.")
	}
	// Both 5 and "5" are in use.
	count, err := strconv.Atoi(strings.Trim(string(raw.Max), `"`))
	if err != nil || count < 1 || count > maxReceiveCeiling {
		return nil, errValue(value, attrRedrive,
			"Invalid value for maxReceiveCount, valid values are from 1 to 1000 both inclusive.")
	}
	return &redrivePolicy{target: raw.Target, maxReceives: count}, nil
}

func parseRedriveAllow(value string) (redriveAllowPolicy, error) {
	var policy redriveAllowPolicy
	if err := json.Unmarshal([]byte(value), &policy); err != nil {
		return policy, errValue(value, attrRedriveAllow, "Redrive allow policy is not a valid JSON map.")
	}
	if !slices.Contains([]string{"allowAll", "denyAll", "byQueue"}, policy.Permission) {
		return policy, errValue(value, attrRedriveAllow, "Invalid value for redrivePermission.")
	}
	if (policy.Permission == "byQueue") != (len(policy.Sources) > 0) || len(policy.Sources) > 10 {
		return policy, errValue(value, attrRedriveAllow, "byQueue needs 1 to 10 sourceQueueArns, the others none.")
	}
	return policy, nil
}

// sameAttribute reports whether two values of an attribute mean the same.
func sameAttribute(name, a, b string) bool {
	if name == attrRedrive && a != "" && b != "" {
		x, errX := parseRedrive(a)
		y, errY := parseRedrive(b)
		return errX == nil && errY == nil && *x == *y
	}
	return a == b
}

// effective returns an attribute of a queue, the default when it was not set.
func effective(attributes map[string]string, name string) string {
	if v, ok := attributes[name]; ok {
		return v
	}
	if n, ok := numbers[name]; ok && name != attrKMSReuse {
		return strconv.FormatInt(n.fallback, 10)
	}
	if name == attrManagedSSE {
		return strconv.FormatBool(attributes[attrKMSKey] == "")
	}
	return ""
}
