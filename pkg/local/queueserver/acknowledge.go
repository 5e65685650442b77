package queueserver

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// receipt returns the receipt handle of a message's latest receive. It stays valid over restarts, since receives are
// recorded.
func receipt(m *message) string {
	return base64.RawURLEncoding.EncodeToString([]byte(m.Queue + " " + m.ID + " " + strconv.Itoa(m.State.Count)))
}

// received returns the message of a receipt handle, nil when the handle is outdated: the message is gone or was received
// again since.
func (q *queue) received(handle *string) (*message, error) {
	if aws.ToString(handle) == "" {
		return nil, missing("ReceiptHandle")
	}
	text, err := base64.RawURLEncoding.DecodeString(*handle)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) != 3 || fields[0] != q.Name {
		return nil, errHandle()
	}
	if m := q.messages[fields[1]]; m != nil && strconv.Itoa(m.State.Count) == fields[2] {
		return m, nil
	}
	return nil, nil
}

// acknowledge deletes a message. An outdated handle deletes nothing, and that is not an error.
func (c change) acknowledge(q *queue, handle *string) error {
	m, err := q.received(handle)
	if m != nil {
		c.delete(q, m)
	}
	return err
}

func (s *Server) deleteMessage(_ *http.Request, in *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
	return &sqs.DeleteMessageOutput{}, s.onQueue(in.QueueUrl, func(c change, q *queue) error { return c.acknowledge(q, in.ReceiptHandle) })
}

func (s *Server) deleteMessageBatch(r *http.Request, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
	return s.DeleteMessageBatch(r.Context(), in)
}

// DeleteMessageBatch is the operation without HTTP, as [Server.ReceiveMessage] is.
func (s *Server) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	out := &sqs.DeleteMessageBatchOutput{}
	id := func(e *types.DeleteMessageBatchRequestEntry) *string { return e.Id }
	return out, s.onQueue(in.QueueUrl, func(c change, q *queue) (err error) {
		out.Successful, out.Failed, err = each(in.Entries, id, func(e *types.DeleteMessageBatchRequestEntry) (types.DeleteMessageBatchResultEntry, error) {
			return types.DeleteMessageBatchResultEntry{Id: e.Id}, c.acknowledge(q, e.ReceiptHandle)
		})
		return err
	})
}

// changeVisibility sets when a received message becomes visible again, at most 12 hours after its receive.
func (c change) changeVisibility(q *queue, handle *string, timeout int32) error {
	if err := between("VisibilityTimeout", timeout, 0, maxVisibility); err != nil {
		return err
	}
	m, err := q.received(handle)
	if err != nil {
		return err
	}
	if m == nil {
		return invalid("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", *handle)
	}
	to := m.State
	to.Visible = c.now + int64(timeout)*1000
	if to.Visible > to.Received+maxVisibility*1000 {
		return invalid("Total VisibilityTimeout for the message is beyond the limit [%d seconds].", maxVisibility)
	}
	c.set(q, m, to)
	return nil
}

func (s *Server) changeMessageVisibility(_ *http.Request, in *sqs.ChangeMessageVisibilityInput) (*sqs.ChangeMessageVisibilityOutput, error) {
	return &sqs.ChangeMessageVisibilityOutput{}, s.onQueue(in.QueueUrl, func(c change, q *queue) error {
		return c.changeVisibility(q, in.ReceiptHandle, in.VisibilityTimeout)
	})
}

func (s *Server) changeMessageVisibilityBatch(_ *http.Request, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	id := func(e *types.ChangeMessageVisibilityBatchRequestEntry) *string { return e.Id }
	return out, s.onQueue(in.QueueUrl, func(c change, q *queue) (err error) {
		out.Successful, out.Failed, err = each(in.Entries, id, func(e *types.ChangeMessageVisibilityBatchRequestEntry) (types.ChangeMessageVisibilityBatchResultEntry, error) {
			return types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id}, c.changeVisibility(q, e.ReceiptHandle, e.VisibilityTimeout)
		})
		return err
	})
}
