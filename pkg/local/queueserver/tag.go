package queueserver

import "maps"

const maxTags = 50 // of a queue

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
