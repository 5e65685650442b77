package queueserver

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPage       = 1000
	purgeInterval = 60_000 // milliseconds between purges, and before a deleted queue's name is free
	maxTags       = 50
)

// Output of operations that answer nothing.
type nothing struct{}

type queueRef struct {
	QueueURL string `json:"QueueUrl"`
}

// find returns the queue that a URL names, brought up to the present.
func (c *change) find(queueURL string) (*queue, error) {
	if queueURL == "" {
		return nil, errMissing("QueueUrl")
	}
	u, err := url.Parse(queueURL)
	if err != nil {
		return nil, plain(http.StatusNotFound, "InvalidAddress", "The address %s is not valid for this endpoint.", queueURL)
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	name := parts[len(parts)-1]
	if len(parts) > 1 && parts[len(parts)-2] != c.server.config.AccountID {
		return nil, errNoQueue()
	}
	q := c.names[name]
	if q == nil {
		return nil, errNoQueue()
	}
	return q, c.refresh(q)
}

func (s *Server) arn(name string) string {
	return "arn:aws:sqs:" + s.config.Region + ":" + s.config.AccountID + ":" + name
}

// byARN returns the queue of an ARN, nil when there is none.
func (c *change) byARN(arn string) *queue {
	name, ok := strings.CutPrefix(arn, c.server.arn(""))
	if !ok {
		return nil
	}
	return c.names[name]
}

func (s *Server) url(c call, name string) string {
	return c.base + "/" + s.config.AccountID + "/" + name
}

type createQueueInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}

type queueURLOutput struct {
	QueueURL string `json:"QueueUrl"`
}

func (s *Server) createQueue(req call, in *createQueueInput) (queueURLOutput, error) {
	out := queueURLOutput{s.url(req, in.QueueName)}
	if err := checkQueueName(in.QueueName); err != nil {
		return out, err
	}
	return out, s.update(func(c *change) error {
		if q := c.names[in.QueueName]; q != nil {
			return sameQueue(q, in.Attributes)
		}
		// A FIFO attribute of "false" is refused too, as the service does.
		attributes := compactAttributes(nil, in.Attributes)
		if err := c.checkAttributes(in.QueueName, attributes); err != nil {
			return err
		}
		if freed, ok := c.freed[in.QueueName]; ok && c.now < freed+purgeInterval {
			return modelled("QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
		}
		return c.write(&queuePut{
			queue: c.lastQueue + 1, name: in.QueueName, created: c.now, modified: c.now,
			attributes: attributes, tags: maps.Clone(in.Tags),
		})
	})
}

func checkQueueName(name string) error {
	if name == "" {
		return errMissing("QueueName")
	}
	if strings.HasSuffix(name, ".fifo") {
		return errFIFO()
	}
	if len(name) > 80 || !onlyNameCharacters(name) {
		return errParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return nil
}

func onlyNameCharacters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// sameQueue lets CreateQueue be repeated: what it names must not differ from the queue that exists.
func sameQueue(q *queue, attributes map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := checkAttribute(name, attributes[name]); err != nil {
			return err
		}
		if !sameAttribute(name, attributes[name], effective(q.attributes, name)) {
			return errQueueExists(name)
		}
	}
	return nil
}

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

func (s *Server) getQueueURL(req call, in *struct{ QueueName string }) (queueURLOutput, error) {
	out := queueURLOutput{s.url(req, in.QueueName)}
	if in.QueueName == "" {
		return out, errMissing("QueueName")
	}
	return out, s.update(func(c *change) error {
		if c.names[in.QueueName] == nil {
			return errNoQueue()
		}
		return nil
	})
}

type listQueuesInput struct {
	QueueNamePrefix string
	MaxResults      int
	NextToken       string
}

type listQueuesOutput struct {
	QueueURLs []string `json:"QueueUrls"`
	NextToken string   `json:",omitzero"`
}

func (s *Server) listQueues(req call, in *listQueuesInput) (listQueuesOutput, error) {
	var names []string
	err := s.update(func(c *change) error {
		for _, name := range c.sortedNames() {
			if strings.HasPrefix(name, in.QueueNamePrefix) {
				names = append(names, name)
			}
		}
		return nil
	})
	if err != nil {
		return listQueuesOutput{}, err
	}
	urls, token, err := s.page(req, names, in.MaxResults, in.NextToken)
	return listQueuesOutput{urls, token}, err
}

// page cuts a page out of sorted names. The token is the last name of the page before.
func (s *Server) page(req call, names []string, size int, token string) (urls []string, next string, err error) {
	if size < 0 || size > maxPage {
		return nil, "", errValue(size, "MaxResults", "MaxResults must be an integer between 1 and 1000.")
	}
	if size == 0 {
		size = maxPage
	}
	start, found := slices.BinarySearch(names, token)
	if found {
		start++
	}
	names = names[start:]
	if len(names) > size {
		names = names[:size]
		next = names[size-1]
	}
	for _, name := range names {
		urls = append(urls, s.url(req, name))
	}
	return urls, next, nil
}

func (s *Server) deleteQueue(_ call, in *queueRef) (out nothing, err error) {
	return out, s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		return c.write(&queueRemoved{queue: q.id, at: c.now})
	})
}

func (s *Server) purgeQueue(_ call, in *queueRef) (out nothing, err error) {
	return out, s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		if q.purged > 0 && c.now < q.purged+purgeInterval {
			return errPurging(q.name)
		}
		return c.write(&queuePurged{queue: q.id, at: c.now})
	})
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

type tagQueueInput struct {
	queueRef
	Tags map[string]string
}

func (s *Server) tagQueue(_ call, in *tagQueueInput) (out nothing, err error) {
	return out, s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		tags := map[string]string{}
		maps.Copy(tags, q.tags)
		maps.Copy(tags, in.Tags)
		if len(tags) > maxTags {
			return errParameter("Too many tags added for queue %s.", q.name)
		}
		return c.redefine(q, q.attributes, tags)
	})
}

type untagQueueInput struct {
	queueRef
	TagKeys []string
}

func (s *Server) untagQueue(_ call, in *untagQueueInput) (out nothing, err error) {
	return out, s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		tags := map[string]string{}
		maps.Copy(tags, q.tags)
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
		return c.redefine(q, q.attributes, tags)
	})
}

type tagsOutput struct {
	Tags map[string]string `json:",omitempty"`
}

func (s *Server) listQueueTags(_ call, in *queueRef) (out tagsOutput, err error) {
	err = s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err == nil {
			out.Tags = q.tags
		}
		return err
	})
	return out, err
}

type listSourcesInput struct {
	queueRef
	MaxResults int
	NextToken  string
}

type listSourcesOutput struct {
	QueueURLs []string `json:"queueUrls"`
	NextToken string   `json:",omitzero"`
}

func (s *Server) listDeadLetterSourceQueues(req call, in *listSourcesInput) (listSourcesOutput, error) {
	var names []string
	err := s.update(func(c *change) error {
		q, err := c.find(in.QueueURL)
		if err != nil {
			return err
		}
		names = c.sourcesOf(q)
		return nil
	})
	if err != nil {
		return listSourcesOutput{}, err
	}
	urls, token, err := s.page(req, names, in.MaxResults, in.NextToken)
	return listSourcesOutput{urls, token}, err
}

// sourcesOf returns the names of the queues whose dead letters go to q, in order.
func (c *change) sourcesOf(q *queue) []string {
	var names []string
	for _, name := range c.sortedNames() {
		if p := c.names[name].settings.redrive; p != nil && p.target == c.server.arn(q.name) {
			names = append(names, name)
		}
	}
	return names
}
