package queueserver

import (
	"encoding/base64"
	"encoding/binary"
)

// receipt names one receive of one message. It stays valid over restarts, since receives are recorded.
type receipt struct {
	queue, seq uint64
	count      int // the message's receives, this one included
}

// String returns the receipt handle: the fields as varints and a checksum, which tells a handle of ours from anything
// else, in base64.
func (r receipt) String() string {
	c := codec{b: make([]byte, 0, 32)}
	r.fields(&c)
	return base64.RawURLEncoding.EncodeToString(binary.LittleEndian.AppendUint32(c.b, checksum(c.b)))
}

func (r *receipt) fields(c *codec) {
	c.uints(&r.queue, &r.seq)
	c.count(&r.count)
}

func parseReceipt(handle string) (receipt, error) {
	b, err := base64.RawURLEncoding.DecodeString(handle)
	if err != nil || len(b) < 4 {
		return receipt{}, errHandle()
	}
	fields, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	var r receipt
	c := codec{reading: true, b: fields}
	r.fields(&c)
	if checksum(fields) != sum || c.err != nil || len(c.b) > 0 {
		return receipt{}, errHandle()
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
	if m := q.messages[r.seq]; m != nil && m.count == r.count {
		return m, nil
	}
	return nil, nil
}
