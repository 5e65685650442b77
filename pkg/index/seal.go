package index

import (
	"encoding/binary"
	"hash/crc32"
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
