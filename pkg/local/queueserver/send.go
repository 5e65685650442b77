package queueserver

import (
	"crypto/md5"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// sendEntry is a message as it is sent, alone or in a batch.
type sendEntry struct {
	ID                      string `json:"Id"`
	MessageBody             string
	DelaySeconds            *int64
	MessageAttributes       map[string]attributeValue
	MessageSystemAttributes map[string]attributeValue
	MessageDeduplicationID  string `json:"MessageDeduplicationId"`
	MessageGroupID          string `json:"MessageGroupId"`
}

type sendMessageInput struct {
	queueRef
	sendEntry
}

type sent struct {
	ID                           string `json:"Id,omitzero"` // of the batch entry
	MessageID                    string `json:"MessageId"`
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitzero"`
	MD5OfMessageSystemAttributes string `json:",omitzero"`
}

// draft is a message that passed every check that needs no queue.
type draft struct {
	entry   *sendEntry
	content *content
	size    int // bytes of body and attributes
}

func newDraft(e *sendEntry) (*draft, error) {
	if e.MessageBody == "" {
		return nil, errMissing("MessageBody")
	}
	if !validText(e.MessageBody) {
		return nil, plain(http.StatusBadRequest, "InvalidMessageContents", "Invalid characters found. Valid unicode characters are"+
			" #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if e.MessageDeduplicationID != "" {
		return nil, errValue(e.MessageDeduplicationID, "MessageDeduplicationId",
			"The request includes a parameter that is not valid for this queue type.")
	}
	if err := checkGroup(e.MessageGroupID); err != nil {
		return nil, err
	}
	if d := e.DelaySeconds; d != nil && (*d < 0 || *d > 900) {
		return nil, errValue(*d, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
	}
	attributes, err := parseAttributes(e.MessageAttributes)
	if err != nil {
		return nil, err
	}
	trace, err := parseTrace(e.MessageSystemAttributes)
	if err != nil {
		return nil, err
	}
	sum := md5.Sum([]byte(e.MessageBody))
	body := &content{Body: e.MessageBody, BodyMD5: sum, Attributes: attributes, Trace: trace}
	d := &draft{entry: e, content: body, size: len(e.MessageBody)}
	for _, a := range attributes {
		d.size += a.size()
	}
	return d, nil
}

// checkGroup accepts no group, or 1 to 128 visible ASCII characters.
func checkGroup(name string) error {
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(name) > 128 || strings.IndexFunc(name, invisible) >= 0 {
		return errValue(name, "MessageGroupId",
			"MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	return nil
}

// send enters a draft into a queue and returns the answer to its sender.
func (c *change) send(q *queue, d *draft) (sent, error) {
	if d.size > q.settings.maxSize {
		return sent{}, errParameter("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.settings.maxSize)
	}
	delay := q.settings.delay
	if d.entry.DelaySeconds != nil {
		delay = *d.entry.DelaySeconds * 1000
	}
	m := message{Content: d.content, Seq: c.lastSeq + 1, ID: uuid.NewString(), Sent: c.now, Visible: c.now + delay}
	put := &messagePut{Queue: q.id, Group: d.entry.MessageGroupID, Message: m, Delayed: delay > 0}
	return sent{
		ID:                           d.entry.ID,
		MessageID:                    m.ID,
		MD5OfMessageBody:             d.content.hexMD5(),
		MD5OfMessageAttributes:       attributesMD5(d.content.Attributes),
		MD5OfMessageSystemAttributes: traceMD5(d.content.Trace),
	}, c.write(put)
}

func (s *Server) sendMessage(_ call, in *sendMessageInput) (out sent, err error) {
	d, invalid := newDraft(&in.sendEntry)
	err = s.onQueue(in.queueRef, func(c *change, q *queue) (err error) {
		if invalid != nil {
			return invalid
		}
		out, err = c.send(q, d)
		return err
	})
	return out, err
}

type sendMessageBatchInput struct {
	queueRef
	Entries []sendEntry
}

func (s *Server) sendMessageBatch(_ call, in *sendMessageBatchInput) (*batchResult[sent], error) {
	drafts := make([]*draft, len(in.Entries))
	invalid := make([]error, len(in.Entries))
	total := 0
	for i := range in.Entries {
		e := &in.Entries[i]
		if drafts[i], invalid[i] = newDraft(e); invalid[i] == nil {
			total += drafts[i].size
		} else {
			total += len(e.MessageBody)
		}
	}
	out := &batchResult[sent]{}
	return out, s.onQueue(in.queueRef, func(c *change, q *queue) error {
		if err := checkBatch(in.Entries, func(e *sendEntry) string { return e.ID }); err != nil {
			return err
		}
		if total > maxMessage {
			return modelled("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessage, total)
		}
		for i := range in.Entries {
			ok, err := sent{}, invalid[i]
			if err == nil {
				ok, err = c.send(q, drafts[i])
			}
			if err := out.add(in.Entries[i].ID, ok, err); err != nil {
				return err
			}
		}
		return nil
	})
}
