package queueserver

import (
	"maps"
	"slices"
)

const maxTags = 50 // of a queue

type tagQueueInput struct {
	queueRef
	Tags map[string]string
}

func (s *Server) tagQueue(_ call, in *tagQueueInput) (out nothing, err error) {
	return out, s.onQueue(in.queueRef, func(c *change, q *queue) error {
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
	return out, s.onQueue(in.queueRef, func(c *change, q *queue) error {
		tags := maps.Clone(q.tags)
		maps.DeleteFunc(tags, func(key, _ string) bool { return slices.Contains(in.TagKeys, key) })
		return c.redefine(q, q.attributes, tags)
	})
}

type tagsOutput struct {
	Tags map[string]string `json:",omitempty"`
}

func (s *Server) listQueueTags(_ call, in *queueRef) (out tagsOutput, err error) {
	return out, s.onQueue(*in, func(_ *change, q *queue) error {
		out.Tags = q.tags
		return nil
	})
}
