package queueserver

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// receipt names one receive of one message. It stays valid over restarts, since receives are recorded.
type receipt struct {
	queue, seq uint64
	count      int // the message's receives, this one included
}

// String returns the receipt handle: the fields and a checksum, which tells a handle of ours from anything else, in
// base64.
func (r receipt) String() string {
	b := fmt.Appendf(nil, "%d %d %d", r.queue, r.seq, r.count)
	return base64.RawURLEncoding.EncodeToString(binary.LittleEndian.AppendUint32(b, checksum(b)))
}

func parseReceipt(handle string) (r receipt, err error) {
	b, err := base64.RawURLEncoding.DecodeString(handle)
	if err != nil || len(b) < 4 {
		return r, errHandle()
	}
	fields, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if _, err := fmt.Sscanf(string(fields), "%d %d %d", &r.queue, &r.seq, &r.count); err != nil || checksum(fields) != sum {
		return r, errHandle()
	}
	return r, nil
}

// received returns the message of a receipt handle, nil when it is gone or was received again since: then the handle is
// a good one, but no longer the message's.
func (q *queue) received(handle string) (*message, error) {
	if handle == "" {
		return nil, errMissing("ReceiptHandle")
	}
	r, err := parseReceipt(handle)
	if err != nil {
		return nil, err
	}
	if r.queue != q.id {
		return nil, errHandle()
	}
	if m := q.messages[r.seq]; m != nil && m.Count == r.count {
		return m, nil
	}
	return nil, nil
}
