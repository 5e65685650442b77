package queueserver

// receiptEntry is a receipt handle, alone or in a batch.
type receiptEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int64 // for ChangeMessageVisibility, in seconds
}

type receiptInput struct {
	queueRef
	receiptEntry
}

type receiptBatchInput struct {
	queueRef
	Entries []receiptEntry
}

// onReceipt makes an operation on one receipt handle.
func (s *Server) onReceipt(act receiptAction) func(call, *receiptInput) (nothing, error) {
	return func(_ call, in *receiptInput) (out nothing, err error) {
		return out, s.onQueue(in.queueRef, func(c *change, q *queue) error { return act(c, q, &in.receiptEntry) })
	}
}

// onReceipts makes an operation on a batch of receipt handles.
func (s *Server) onReceipts(act receiptAction) func(call, *receiptBatchInput) (*batchResult[done], error) {
	return func(_ call, in *receiptBatchInput) (*batchResult[done], error) {
		out := &batchResult[done]{}
		return out, s.onQueue(in.queueRef, func(c *change, q *queue) error {
			if err := checkBatch(in.Entries, func(e *receiptEntry) string { return e.ID }); err != nil {
				return err
			}
			for i := range in.Entries {
				e := &in.Entries[i]
				if err := out.add(e.ID, done{e.ID}, act(c, q, e)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

type receiptAction func(*change, *queue, *receiptEntry) error

// acknowledge deletes a message. A handle that is no longer the message's deletes nothing, which is no error.
func (c *change) acknowledge(q *queue, e *receiptEntry) error {
	m, err := q.received(e.ReceiptHandle)
	if err != nil || m == nil {
		return err
	}
	return c.write(&messageDeleted{Queue: q.id, Seq: m.Seq})
}

// checkVisibility checks a timeout in seconds, if there is one.
func checkVisibility(timeout *int64) error {
	if timeout != nil && (*timeout < 0 || *timeout > maxVisibility) {
		return errValue(*timeout, "VisibilityTimeout", "Must be between 0 and 43200, if provided.")
	}
	return nil
}

// changeVisibility sets when a received message becomes visible again, at most 12 hours after its receive.
func (c *change) changeVisibility(q *queue, e *receiptEntry) error {
	if e.VisibilityTimeout == nil {
		return errMissing("VisibilityTimeout")
	}
	if err := checkVisibility(e.VisibilityTimeout); err != nil {
		return err
	}
	m, err := q.received(e.ReceiptHandle)
	if err != nil {
		return err
	}
	if m == nil {
		return errValue(e.ReceiptHandle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	}
	visible := c.now + *e.VisibilityTimeout*1000
	if visible > m.Received+maxVisibility*1000 {
		return errValue(*e.VisibilityTimeout, "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].")
	}
	if err := c.write(&visibilityChanged{Queue: q.id, Seq: m.Seq, Visible: visible}); err != nil {
		return err
	}
	q.showDue(c.now)
	return nil
}
