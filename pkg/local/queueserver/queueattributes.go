package queueserver

import (
	"maps"
	"net/http"
	"strconv"
)

// mergeAttributes returns the attributes after a change. An empty value removes a policy or a key.
func mergeAttributes(old, changes map[string]string) map[string]string {
	merged := map[string]string{}
	maps.Copy(merged, old)
	maps.Copy(merged, changes)
	for _, name := range []string{attrRedrive, attrRedriveAllow, attrPolicy, attrKMSKey} {
		if merged[name] == "" {
			delete(merged, name)
		}
	}
	return merged
}

// checkAttributes checks a queue's attributes, also against the other queues.
func (c *change) checkAttributes(name string, attributes map[string]string) error {
	set, err := settingsOf(attributes)
	if err != nil {
		return err
	}
	if attributes[attrKMSKey] != "" && attributes[attrManagedSSE] == "true" {
		return plain(http.StatusBadRequest, "InvalidAttributeName",
			"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	}
	if set.redrive == nil {
		return nil
	}
	policy, self := attributes[attrRedrive], c.server.arn(name)
	target := c.byARN(set.redrive.target)
	switch {
	case set.redrive.target == self:
		return errValue(policy, attrRedrive, "A queue cannot be its own dead-letter queue.")
	case target == nil:
		return errValue(policy, attrRedrive, "Dead letter target does not exist.")
	case !target.settings.allow.allows(self):
		return errValue(policy, attrRedrive, "The dead-letter queue's RedriveAllowPolicy does not allow this source.")
	}
	return nil
}

type getQueueAttributesInput struct {
	queueRef
	AttributeNames []string
}

type attributesOutput struct {
	Attributes map[string]string `json:",omitempty"`
}

func (s *Server) getQueueAttributes(_ call, in *getQueueAttributesInput) (attributesOutput, error) {
	out := attributesOutput{Attributes: map[string]string{}}
	return out, s.onQueue(in.queueRef, func(c *change, q *queue) error {
		all := s.queueAttributes(q)
		for _, name := range in.AttributeNames {
			value, present := all[name]
			switch {
			case name == "All":
				maps.Copy(out.Attributes, all)
			case name == attrOldest:
				if oldest := q.age.first(); oldest != nil {
					out.Attributes[name] = strconv.FormatInt((c.now-oldest.Sent)/1000, 10)
				}
			case present:
				out.Attributes[name] = value
			case !knownAttribute(name):
				return errAttributeName(name)
			}
		}
		return nil
	})
}

// knownAttribute reports whether queues can have an attribute. Those of FIFO queues are known, and never present.
func knownAttribute(name string) bool {
	if _, numeric := numbers[name]; numeric {
		return true
	}
	switch name {
	case attrRedrive, attrRedriveAllow, attrPolicy, attrKMSKey, attrManagedSSE, attrFIFO,
		"ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit":
		return true
	}
	return false
}

// queueAttributes returns every attribute that a queue has, times in seconds.
func (s *Server) queueAttributes(q *queue) map[string]string {
	all := maps.Clone(q.attributes)
	for _, name := range []string{attrVisibility, attrDelay, attrMaxSize, attrRetention, attrWait, attrManagedSSE} {
		all[name] = effective(q.attributes, name)
	}
	all[attrARN] = s.arn(q.name)
	all[attrCreated] = strconv.FormatInt(q.created/1000, 10)
	all[attrModified] = strconv.FormatInt(q.modified/1000, 10)
	all[attrReady] = strconv.Itoa(q.ready)
	all[attrInFlight] = strconv.Itoa(q.inFlight)
	all[attrDelayed] = strconv.Itoa(q.delayed)
	return all
}

type setQueueAttributesInput struct {
	queueRef
	Attributes map[string]string
}

func (s *Server) setQueueAttributes(_ call, in *setQueueAttributesInput) (out nothing, err error) {
	return out, s.onQueue(in.queueRef, func(c *change, q *queue) error {
		merged := mergeAttributes(q.attributes, in.Attributes)
		if err := c.checkAttributes(q.name, merged); err != nil {
			return err
		}
		return c.redefine(q, merged, q.tags)
	})
}

// redefine gives a queue other attributes and tags.
func (c *change) redefine(q *queue, attributes, tags map[string]string) error {
	return c.write(&queuePut{
		Queue: q.id, Name: q.name, Created: q.created, Modified: c.now, Purged: q.purged,
		Attributes: attributes, Tags: tags,
	})
}
