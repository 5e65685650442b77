package queueserver

// Release makes every message visible that a consumer of the queue has
// received and not deleted, whatever timeout it has left, and returns how
// many. It is for the start of a consumer which knows that all earlier ones
// are dead: SQS itself has no such call and lets the timeouts run out.
func (s *Server) Release(queueURL string) (released int, err error) {
	err = s.update(func(c *change) error {
		q, err := c.find(queueURL)
		if err != nil {
			return err
		}
		var flying []uint64
		for seq, m := range q.messages {
			if m.place == placeFlying {
				flying = append(flying, seq)
			}
		}
		for _, seq := range flying {
			if err := c.write(&visibilityChanged{queue: q.id, seq: seq, visible: c.now}); err != nil {
				return err
			}
		}
		released = len(flying)
		return nil
	})
	return released, err
}
