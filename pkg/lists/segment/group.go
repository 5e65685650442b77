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
	version = 3
)

// Group is a part of a segment that is stored and read on its own.
type Group uint8

const (
	// Core holds ids, revisions, Visible and all columns that are not Text.
	Core Group = iota
	// Text holds the others, where the schema has any.
	Text
	// NumGroups is how many there are.
	NumGroups
)

// id ties the groups of a segment together: it is a hash of all that they hold.
type id [16]byte

// head is the start of every group.
type head struct {
	id               id
	rows, tombstones uint32
}

func (h head) append(dst []byte, s *columnar.Schema, g Group) []byte {
	dst = append(dst, magic...)
	dst = append(dst, version, byte(g))
	dst = append(dst, h.id[:]...)
	sum := schemaSum(s)
	dst = append(dst, sum[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, h.rows)
	return binary.LittleEndian.AppendUint32(dst, h.tombstones)
}

// appendSum writes the end of every group.
func appendSum(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, checksum(b)) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// schemaSum hashes the name of the schema, and the names, types and flags of its
// columns, but for Each, which changes no segment.
func schemaSum(s *columnar.Schema) [8]byte {
	type column struct {
		Name                      string
		Type                      columnar.ColumnType
		Sort, Search, Match, Fold bool
	}
	var columns []column
	for _, c := range s.Columns() {
		columns = append(columns, column{c.Name, c.Type, c.Sort, c.Search, c.Match, c.Fold})
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %+v", s.Name(), columns))
	return [8]byte(sum[:])
}

// openGroup checks the checksum and the head of a group and returns a reader of the
// rest.
func openGroup(s *columnar.Schema, g Group, data []byte) (*reader, head, error) {
	if len(data) < len(magic)+1 || string(data[:len(magic)]) != magic {
		return nil, head{}, fmt.Errorf("not a segment: %w", columnar.ErrFormat)
	}
	body := data[:max(len(data)-crc32.Size, 0)]
	if len(data) < crc32.Size || checksum(body) != binary.LittleEndian.Uint32(data[len(body):]) {
		return nil, head{}, fmt.Errorf("checksum differs: %w", columnar.ErrFormat)
	}
	if v := data[len(magic)]; v != version {
		cause := columnar.ErrVersion
		if v > version {
			cause = columnar.ErrNewer
		}
		return nil, head{}, fmt.Errorf("format %d, this program knows %d: %w", v, version, cause)
	}
	r := &reader{strictbinary.Reader{Data: body[len(magic)+1:]}}
	group := Group(r.Byte())
	h := head{id: id(r.fixed(len(id{})))}
	sum := [8]byte(r.fixed(8))
	h.rows, h.tombstones = r.uint32(), r.uint32()
	switch {
	case r.Bad || group != g || h.rows > MaxRows:
		return nil, head{}, fmt.Errorf("head of group %d: %w", group, columnar.ErrFormat)
	case sum != schemaSum(s):
		return nil, head{}, fmt.Errorf("of other columns than %s has now: %w", s.Name(), columnar.ErrVersion)
	}
	return r, h, nil
}

// reader reads the parts of a group.
type reader struct{ strictbinary.Reader }

// end fails unless all was read and is right.
func (r *reader) end(right bool) error {
	if r.Bad || len(r.Data) > 0 || !right {
		return columnar.ErrFormat
	}
	return nil
}

// fixed returns n bytes, which are 0 when fewer are left.
func (r *reader) fixed(n int) []byte {
	if b := r.Take(uint64(n)); b != nil {
		return b
	}
	return make([]byte, n)
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.fixed(4)) }

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
	compressed := encoder().EncodeAll(raw, nil)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(raw)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(compressed)))
	return append(dst, compressed...)
}

// frame reads a compressed part of at most limit bytes into dst, or into new memory
// when that is too small.
func (r *reader) frame(dst []byte, limit int) []byte {
	size, length := uint64(r.uint32()), uint64(r.uint32())
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
