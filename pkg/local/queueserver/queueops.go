package queueserver

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	maxPage       = 1000
	purgeInterval = 60_000 // milliseconds between purges, and before a deleted queue's name is free
)

// nothing is the output of operations that answer nothing.
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
		attributes := mergeAttributes(nil, in.Attributes)
		if err := c.checkAttributes(in.QueueName, attributes); err != nil {
			return err
		}
		if freed, ok := c.freed[in.QueueName]; ok && c.now < freed+purgeInterval {
			return modelled("QueueDeletedRecently",
				"You must wait 60 seconds after deleting a queue before you can create another with the same name.")
		}
		return c.write(&queuePut{
			Queue: c.lastQueue + 1, Name: in.QueueName, Created: c.now, Modified: c.now,
			Attributes: attributes, Tags: maps.Clone(in.Tags),
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

// sameQueue lets CreateQueue be repeated: the attributes that it names must be those of the queue that exists.
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

// pageInput asks for a page of a list.
type pageInput struct {
	MaxResults int
	NextToken  string
}

type listQueuesInput struct {
	QueueNamePrefix string
	pageInput
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
	urls, token, err := s.page(req, names, in.pageInput)
	return listQueuesOutput{urls, token}, err
}

// page returns a page of sorted names as URLs. The token is the last name of the page before.
func (s *Server) page(req call, names []string, in pageInput) (urls []string, next string, err error) {
	if in.MaxResults < 0 || in.MaxResults > maxPage {
		return nil, "", errValue(in.MaxResults, "MaxResults", "MaxResults must be an integer between 1 and 1000.")
	}
	start, found := slices.BinarySearch(names, in.NextToken)
	if found {
		start++
	}
	names = names[start:]
	if size := cmp.Or(in.MaxResults, maxPage); len(names) > size {
		names, next = names[:size], names[size-1]
	}
	for _, name := range names {
		urls = append(urls, s.url(req, name))
	}
	return urls, next, nil
}

func (s *Server) deleteQueue(_ call, in *queueRef) (out nothing, err error) {
	return out, s.onQueue(*in, func(c *change, q *queue) error { return c.write(&queueRemoved{Queue: q.id, At: c.now}) })
}

func (s *Server) purgeQueue(_ call, in *queueRef) (out nothing, err error) {
	return out, s.onQueue(*in, func(c *change, q *queue) error {
		if q.purged > 0 && c.now < q.purged+purgeInterval {
			return errPurging(q.name)
		}
		return c.write(&queuePurged{Queue: q.id, At: c.now})
	})
}
