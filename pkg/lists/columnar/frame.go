package columnar

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxGroup bounds what a group of a segment holds, in bytes before compression:
// what declares more is refused before room is made for it.
const MaxGroup = 256 << 20

// maxRatio is the most that zstd can compress: 128 KiB of one byte take four.
const maxRatio = 32 << 10

// encoder and decoder are shared, since each takes memory for its tables. Both
// take calls by many goroutines at once.
var (
	encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	})
	decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(MaxGroup), zstd.WithDecodeAllCapLimit(true))
	})
)

// appendFrame appends a compressed part behind its sizes.
func appendFrame(dst, raw []byte) []byte {
	e, err := encoder()
	if err != nil {
		panic(fmt.Sprintf("index: zstd encoder: %v", err)) // its options are constants
	}
	body := e.EncodeAll(raw, nil)
	dst = binary.AppendUvarint(dst, uint64(len(raw)))
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// frame reads a compressed part of at most limit bytes into dst, or into memory of
// its own when that has not the room.
func (r *reader) frame(dst []byte, limit int) []byte {
	size, length := r.uvarint(), r.uvarint()
	body := r.take(length)
	r.fail(size > uint64(max(limit, 0)) || size > maxRatio*length)
	if r.bad {
		return nil
	}
	d, err := decoder()
	if err != nil {
		panic(fmt.Sprintf("index: zstd decoder: %v", err)) // its options are constants
	}
	if uint64(cap(dst)) < size {
		dst = make([]byte, 0, size)
	}
	raw, err := d.DecodeAll(body, dst[:0:size])
	r.fail(err != nil || uint64(len(raw)) != size)
	if r.bad {
		return nil
	}
	return raw
}
