// Package strictbinary reads varints and bytes where one form only is accepted for
// each value, as formats with a checksum or a hash over their bytes need it.
package strictbinary

import "encoding/binary"

// Reader takes values off Data. Once something does not fit, Bad is set, and what
// is read from then on means nothing.
type Reader struct {
	Data []byte
	Bad  bool
}

// Fail sets Bad when a check of the caller's fails.
func (r *Reader) Fail(when bool) { r.Bad = r.Bad || when }

// Take returns the next n bytes, or nil when fewer are left.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Data)) {
		r.Bad, r.Data = true, nil
		return nil
	}
	v := r.Data[:n]
	r.Data = r.Data[n:]
	return v
}

// Byte returns the next byte.
func (r *Reader) Byte() byte {
	if v := r.Take(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

// Uvarint returns the next unsigned varint. It refuses any but the shortest form.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Data)
	if n <= 0 || n > 1 && r.Data[n-1] == 0 {
		r.Bad, r.Data = true, nil
		return 0
	}
	r.Data = r.Data[n:]
	return v
}

// Varint returns the next signed varint, as Uvarint.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}
