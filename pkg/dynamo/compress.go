package dynamo

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// maxUnpacked bounds what a stored body may unpack to, in bytes: more than
// twice that of the largest event.
const maxUnpacked = 1 << 20

// packer makes bodies smaller. It is safe for concurrent use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newPacker() *packer {
	// A body is small, and many are packed one after the other: the window is
	// as large as the largest of them, and each is written in one frame.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		panic(err) // the options are constant
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		panic(err) // as above
	}
	return &packer{encoder: encoder, decoder: decoder}
}

// pack returns the body packed; smaller is false when it is better kept as
// it is.
func (p *packer) pack(body []byte) (packed []byte, smaller bool) {
	packed = p.encoder.EncodeAll(body, make([]byte, 0, len(body)))
	return packed, len(packed) < len(body)
}

func (p *packer) unpack(packed []byte) ([]byte, error) {
	body, err := p.decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack a body of %d bytes: %w", len(packed), err)
	}
	return body, nil
}
