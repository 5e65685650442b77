package queueserver

import (
	"maps"
	"net/http"
	"strconv"
)

// compactAttributes returns the attributes after a change. An empty value takes an attribute away.
func compactAttributes(old, changes map[string]string) map[string]string {
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]string{}
	}
	for name, value := range changes {
		if value == "" && (name == attrRedrive || name == attrRedriveAllow || name == attrPolicy || name == attrKMSKey) {
			delete(merged, name)
		} else {
			merged[name] = value
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
	return out, s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		all := s.queueAttributes(q)
		for _, name := range in.AttributeNames {
			if name == "All" {
				maps.Copy(out.Attributes, all)
				continue
			}
			if name == attrOldest {
				if age, found := q.oldest(c.now); found {
					out.Attributes[name] = strconv.FormatInt(age/1000, 10)
				}
				continue
			}
			if !knownAttribute(name) {
				return errAttributeName(name)
			}
			if value, ok := all[name]; ok {
				out.Attributes[name] = value
			}
		}
		return nil
	})
}

// knownAttribute reports whether queues can have an attribute. Those of FIFO queues are known, and never there.
func knownAttribute(name string) bool {
	switch name {
	case attrVisibility, attrDelay, attrMaxSize, attrRetention, attrWait, attrRedrive, attrRedriveAllow, attrPolicy,
		attrKMSKey, attrKMSReuse, attrManagedSSE, attrARN, attrCreated, attrModified, attrReady, attrInFlight, attrDelayed,
		attrFIFO, "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit":
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
	return out, s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		merged := compactAttributes(q.attributes, in.Attributes)
		if err := c.checkAttributes(q.name, merged); err != nil {
			return err
		}
		return c.redefine(q, merged, q.tags)
	})
}

// redefine gives a queue other attributes and tags.
func (c *change) redefine(q *queue, attributes, tags map[string]string) error {
	return c.write(&queuePut{
		queue: q.id, name: q.name, created: q.created, modified: c.now, purged: q.purged,
		attributes: attributes, tags: tags,
	})
}
