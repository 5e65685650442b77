package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

const (
	magic   = "cseg"
	version = 1
)

// id ties the groups of a segment together: it is a hash of all that they hold.
type id [16]byte

// appendHead writes the start of every group.
func appendHead(dst []byte, s *columnar.Schema, g columnar.ColumnGroup, id id) []byte {
	dst = append(dst, magic...)
	dst = append(dst, version, byte(g))
	dst = append(dst, id[:]...)
	dst = appendString(dst, s.Name())
	sum := columnsSum(s)
	return append(dst, sum[:]...)
}

// appendSum writes the end of every group.
func appendSum(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, checksum(b)) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// columnsSum hashes the names, types and flags of the columns.
func columnsSum(s *columnar.Schema) [8]byte {
	var b []byte
	for _, c := range s.Columns() {
		b = append(appendString(b, c.Name), byte(c.Type))
		for _, flag := range []bool{c.Sort, c.Search, c.Match, c.Fold} {
			b = append(b, 0)
			if flag {
				b[len(b)-1] = 1
			}
		}
	}
	sum := sha256.Sum256(b)
	return [8]byte(sum[:])
}

func appendString[S string | []byte](dst []byte, v S) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

// openGroup checks the checksum and the head of a group and returns a reader of the
// rest.
func openGroup(s *columnar.Schema, g columnar.ColumnGroup, data []byte) (*reader, id, error) {
	var of id
	fail := func(err error, what string, args ...any) (*reader, id, error) {
		return nil, id{}, fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
	}
	if len(data) < len(magic)+1 || string(data[:len(magic)]) != magic {
		return fail(columnar.ErrFormat, "not a segment")
	}
	body := data[:max(len(data)-crc32.Size, 0)]
	if len(data) < crc32.Size || checksum(body) != binary.LittleEndian.Uint32(data[len(body):]) {
		return fail(columnar.ErrFormat, "checksum differs")
	}
	if v := data[len(magic)]; v != version {
		return fail(columnar.OtherFormat(int(v), version), "format %d, this program knows %d", v, version)
	}
	r := &reader{strictbinary.Reader{Data: body}}
	r.Take(uint64(len(magic) + 1))
	group := columnar.ColumnGroup(r.Byte())
	copy(of[:], r.Take(uint64(len(of))))
	name := r.Take(r.Uvarint())
	sum := r.Take(8)
	switch {
	case r.Bad:
		return fail(columnar.ErrFormat, "head")
	case group != g:
		return fail(columnar.ErrFormat, "group %d", group)
	case string(name) != s.Name():
		return fail(columnar.ErrVersion, "schema %q", name)
	case [8]byte(sum) != columnsSum(s):
		return fail(columnar.ErrVersion, "other columns than the schema has now")
	}
	return r, of, nil
}

// reader reads the parts of a group.
type reader struct{ strictbinary.Reader }

// MaxGroup bounds the bytes of a group before compression. What declares more is
// refused before memory is reserved for it.
const MaxGroup = 256 << 20

// maxRatio is the most that zstd can compress: 128 KiB of one byte take four.
const maxRatio = 32 << 10

// encoder and decoder are shared, since each takes memory for its tables. Both may
// be called by many goroutines at once.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true)))
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(MaxGroup), zstd.WithDecodeAllCapLimit(true)))
	})
)

// must returns v: an error would say that the options, which are constants, are wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("index: zstd: %v", err))
	}
	return v
}

// appendFrame appends raw, compressed, behind its sizes.
func appendFrame(dst, raw []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(raw)))
	return appendString(dst, encoder().EncodeAll(raw, nil))
}

// frame reads a compressed part of at most limit bytes into dst, or into new memory
// when that is too small.
func (r *reader) frame(dst []byte, limit int) []byte {
	size, length := r.Uvarint(), r.Uvarint()
	body := r.Take(length)
	r.Fail(size > uint64(max(limit, 0)) || size > maxRatio*length)
	if r.Bad {
		return nil
	}
	if uint64(cap(dst)) < size {
		dst = make([]byte, 0, size)
	}
	raw, err := decoder().DecodeAll(body, dst[:0:size])
	r.Fail(err != nil || uint64(len(raw)) != size)
	if r.Bad {
		return nil
	}
	return raw
}
