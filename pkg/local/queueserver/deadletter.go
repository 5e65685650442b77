package queueserver

type listSourcesInput struct {
	queueRef
	pageInput
}

type listSourcesOutput struct {
	QueueURLs []string `json:"queueUrls"`
	NextToken string   `json:",omitzero"`
}

func (s *Server) listDeadLetterSourceQueues(req call, in *listSourcesInput) (listSourcesOutput, error) {
	var names []string
	err := s.onQueue(in.queueRef, func(c *change, q *queue) error {
		names = c.sourcesOf(q)
		return nil
	})
	if err != nil {
		return listSourcesOutput{}, err
	}
	urls, token, err := s.page(req, names, in.pageInput)
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

// redrive moves a message to its dead-letter queue when it is due. A dead-letter queue that was deleted keeps it here.
func (c *change) redrive(q *queue, m *message) (bool, error) {
	policy := q.settings.redrive
	if policy == nil || m.Count-m.Arrived < policy.maxReceives {
		return false, nil
	}
	target := c.byARN(policy.target)
	if target == nil {
		return false, nil
	}
	return true, c.write(&messageMoved{From: q.id, Seq: m.Seq, To: target.id, Arrival: c.lastSeq + 1, Source: c.server.arn(q.name)})
}
