package index

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxUnpacked bounds the bytes that a tail entry or a manifest may unpack to.
const maxUnpacked = 8 << 20

// Both are safe for concurrent use. Their options are constant, so that an
// error is a mistake in the program.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		return must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true)))
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked)))
	})
)

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant table

// NewContentID names a new content of a chunk: by a random number, and by its
// checksum, so that another content under the name is noticed. It is not 0. The
// polynomial is another one than that of the groups in a chunk: with the same, all
// contents that end with their own checksum would have one.
func NewContentID(body []byte) uint64 {
	return uint64(rand.Uint32()|1)<<32 | uint64(crc32.ChecksumIEEE(body)) //nolint:gosec // keeps no secret
}

// named reports whether the content ID is of the body.
func (c StoredChunk) named() bool { return uint32(c.ContentID) == crc32.ChecksumIEEE(c.Body) } //nolint:gosec // the lower half

// seal appends the CRC-32C of the context and the body to the body. The
// context is where the body belongs: at another place its checksum is wrong.
func seal(context, body []byte) []byte {
	sum := crc32.Update(crc32.Checksum(context, castagnoli), castagnoli, body)
	return binary.LittleEndian.AppendUint32(slices.Clip(body), sum)
}

// unseal returns the body of what seal returned, false when it is damaged.
func unseal(context, sealed []byte) (body []byte, ok bool) {
	if len(sealed) < crc32.Size {
		return nil, false
	}
	body, sum := sealed[:len(sealed)-crc32.Size], binary.LittleEndian.Uint32(sealed[len(sealed)-crc32.Size:])
	return body, crc32.Update(crc32.Checksum(context, castagnoli), castagnoli, body) == sum
}
