package queueserver

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func queueURL(r *http.Request, name string) string {
	return "http://" + r.Host + "/" + accountID + "/" + name
}

func (s *Server) createQueue(r *http.Request, in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
	name := aws.ToString(in.QueueName)
	if name == "" || len(name) > 80 || !onlyNameCharacters(name) {
		return nil, invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	out := &sqs.CreateQueueOutput{QueueUrl: aws.String(queueURL(r, name))}
	return out, s.update(func(c change) error {
		if q := c.queues[name]; q != nil {
			return sameQueue(q, in.Attributes)
		}
		return c.define(queueLine{Name: name, Created: c.now, Attributes: in.Attributes})
	})
}

func onlyNameCharacters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// sameQueue lets CreateQueue be repeated: the attributes that it names must be those of the queue that exists.
func sameQueue(q *queue, attributes map[string]string) error {
	if _, err := settingsOf(attributes); err != nil {
		return err
	}
	for name, value := range attributes {
		if value != effective(q.Attributes, name) {
			return &types.QueueNameExists{Message: aws.String("A queue already exists with the same name and a different value for attribute " + name)}
		}
	}
	return nil
}

// define makes a queue, or gives an existing one other attributes.
func (c change) define(as queueLine) error {
	set, err := settingsOf(as.Attributes)
	if err != nil {
		return err
	}
	if set.redrive != nil && (c.byARN(set.redrive.target) == nil || set.redrive.target == arnPrefix+as.Name) {
		return invalid("Value %s for parameter %s is invalid. Reason: The dead-letter queue must be another one that exists.", as.Attributes[attrRedrive], attrRedrive)
	}
	as.Modified = c.now
	if q := c.queues[as.Name]; q != nil {
		q.queueLine, q.settings = as, set
	} else {
		c.queues[as.Name] = newQueue(as, set)
	}
	c.journal.append(line{Queue: &as})
	return nil
}

func (s *Server) getQueueURL(r *http.Request, in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
	out := &sqs.GetQueueUrlOutput{QueueUrl: aws.String(queueURL(r, aws.ToString(in.QueueName)))}
	return out, s.onQueue(in.QueueName, func(change, *queue) error { return nil })
}

// listQueues returns all queues of a prefix: it has no pages.
func (s *Server) listQueues(r *http.Request, in *sqs.ListQueuesInput) (*sqs.ListQueuesOutput, error) {
	out := &sqs.ListQueuesOutput{}
	return out, s.update(func(c change) error {
		for _, name := range slices.Sorted(maps.Keys(c.queues)) {
			if strings.HasPrefix(name, aws.ToString(in.QueueNamePrefix)) {
				out.QueueUrls = append(out.QueueUrls, queueURL(r, name))
			}
		}
		return nil
	})
}

func (s *Server) setQueueAttributes(_ *http.Request, in *sqs.SetQueueAttributesInput) (*sqs.SetQueueAttributesOutput, error) {
	return &sqs.SetQueueAttributesOutput{}, s.onQueue(in.QueueUrl, func(c change, q *queue) error {
		as := q.queueLine
		as.Attributes = map[string]string{}
		maps.Copy(as.Attributes, q.Attributes)
		maps.Copy(as.Attributes, in.Attributes)
		if as.Attributes[attrRedrive] == "" { // removes the policy
			delete(as.Attributes, attrRedrive)
		}
		return c.define(as)
	})
}

func (s *Server) getQueueAttributes(_ *http.Request, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
	out := &sqs.GetQueueAttributesOutput{Attributes: map[string]string{}}
	return out, s.onQueue(in.QueueUrl, func(c change, q *queue) error {
		all := c.attributes(q)
		for _, name := range in.AttributeNames {
			value, present := all[string(name)]
			switch {
			case name == types.QueueAttributeNameAll:
				maps.Copy(out.Attributes, all)
			case present:
				out.Attributes[string(name)] = value
			case name != attrRedrive:
				return &types.InvalidAttributeName{Message: aws.String("Unknown Attribute " + string(name) + ".")}
			}
		}
		return nil
	})
}

// attributes returns every attribute that a queue has, times in seconds.
func (c change) attributes(q *queue) map[string]string {
	all := map[string]string{
		"QueueArn":                              arnPrefix + q.Name,
		"CreatedTimestamp":                      strconv.FormatInt(q.Created/1000, 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.Modified/1000, 10),
		"ApproximateNumberOfMessages":           strconv.Itoa(q.count[phaseReady]),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(q.count[phaseInFlight]),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(q.count[phaseDelayed]),
	}
	for name := range numbers {
		all[name] = effective(q.Attributes, name)
	}
	if policy, ok := q.Attributes[attrRedrive]; ok {
		all[attrRedrive] = policy
	}
	return all
}
