package indexing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// maxEntry bounds the documents of an entry of the tail, in bytes before they
// are compressed, well under the 400 KB of an item. A single document is
// smaller than index.MaxText and some.
const maxEntry = 300 << 10

// placed is a document with the part that it is in.
type placed struct {
	part int32
	columnar.Document
}

// tailEntry is what one entry of the tail says: documents that changed, or
// that the list was rebuilt by the manifest of a version, so that what was
// read from an earlier one may be wrong.
type tailEntry struct {
	documents []placed
	size      int    // bytes of the documents in their encoded form
	rebuilt   uint64 // version of the manifest; 0 for an entry of documents
}

// An entry is one byte that says what follows, a length in bytes (uvarint),
// that many bytes, or fewer that zstd packed them in, and a CRC-32C (4 bytes,
// little endian) of the organization (16 bytes), the list's name, the entry's
// sequence (8 bytes, big endian) and all bytes before it, so that an entry in
// the place of another is noticed:
//
//	0, 1   documents, plain or packed: of each its part (varint) and its
//	       encoded form
//	2      rebuilt: the version of the manifest (uvarint), plain
//
// Where a list's tail lies, and what each choice costs, is said at
// [dynamo.IndexStore.AppendTail].
const (
	entryPlain   = 0
	entryPacked  = 1
	entryRebuilt = 2
)

// maxUnpacked bounds what an entry may unpack to.
const maxUnpacked = 1 << 20

var errEntry = errors.New("not an entry of the tail")

// Both are safe for concurrent use. Their options are constant, so that an
// error is a mistake in the program.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err)
		}
		return encoder
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
		if err != nil {
			panic(err)
		}
		return decoder
	})
)

// appendPlaced appends a document to an entry's content.
func appendPlaced(dst []byte, p *placed) []byte {
	return columnar.AppendDocument(binary.AppendVarint(dst, int64(p.part)), &p.Document)
}

// pack makes an entry of documents from its content.
func pack(content []byte) []byte {
	packed := packer().EncodeAll(content, nil)
	kind, body := byte(entryPacked), packed
	if len(packed) >= len(content) {
		kind, body = entryPlain, content
	}
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(content))), body...)
}

func rebuiltEntry(version uint64) []byte {
	body := binary.AppendUvarint(nil, version)
	return append([]byte{entryRebuilt, byte(len(body))}, body...)
}

// seal adds the checksum that an entry has at its place in the tail.
func (k listKey) seal(sequence uint64, entry []byte) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clip(entry), k.checksum(sequence, entry))
}

func (k listKey) checksum(sequence uint64, entry []byte) uint32 {
	place := slices.Concat(k.org[:], []byte(k.list.Name))
	place = binary.BigEndian.AppendUint64(place, sequence)
	return crc32.Update(crc32.Checksum(place, castagnoli), castagnoli, entry)
}

// entries packs documents into as few entries as the bound allows. They lack
// the checksum.
func entries(documents []placed) [][]byte {
	var out [][]byte
	var content []byte
	for i := range documents {
		next := appendPlaced(nil, &documents[i])
		if len(content) > 0 && len(content)+len(next) > maxEntry {
			out = append(out, pack(content))
			content = nil
		}
		content = append(content, next...)
	}
	if len(content) > 0 {
		out = append(out, pack(content))
	}
	return out
}

// readEntry decodes an entry. Its documents are visible since it was
// appended, which is for the caller to set.
func (k listKey) readEntry(sequence uint64, entry []byte) (tailEntry, error) {
	if len(entry) < crc32.Size {
		return tailEntry{}, fmt.Errorf("%d bytes: %w", len(entry), errEntry)
	}
	body, sum := entry[:len(entry)-crc32.Size], entry[len(entry)-crc32.Size:]
	if k.checksum(sequence, body) != binary.LittleEndian.Uint32(sum) {
		return tailEntry{}, fmt.Errorf("checksum differs: %w", errEntry)
	}
	r := reader{data: body}
	kind := r.take(1)
	size := r.count()
	if r.bad || size > maxUnpacked {
		return tailEntry{}, fmt.Errorf("head: %w", errEntry)
	}
	content := r.data
	if kind[0] == entryPacked {
		var err error
		if content, err = unpacker().DecodeAll(r.data, make([]byte, 0, size)); err != nil {
			return tailEntry{}, fmt.Errorf("unpack: %w", errors.Join(errEntry, err))
		}
	}
	if len(content) != size {
		return tailEntry{}, fmt.Errorf("%d bytes, not %d: %w", len(content), size, errEntry)
	}
	r = reader{data: content}
	if kind[0] == entryRebuilt {
		e := tailEntry{rebuilt: r.uvarint()}
		if r.bad || len(r.data) > 0 {
			return tailEntry{}, fmt.Errorf("version: %w", errEntry)
		}
		return e, nil
	}
	if kind[0] > entryRebuilt {
		return tailEntry{}, fmt.Errorf("kind %d: %w", kind[0], errEntry)
	}
	e := tailEntry{size: size}
	for len(r.data) > 0 {
		p := placed{part: int32(r.varint())} //nolint:gosec // the part of a document that we placed
		if r.bad {
			return tailEntry{}, fmt.Errorf("part: %w", errEntry)
		}
		var err error
		if p.Document, r.data, err = columnar.DecodeDocument(k.list.Schema, r.data); err != nil {
			return tailEntry{}, err
		}
		e.documents = append(e.documents, p)
	}
	return e, nil
}

// byPart divides documents by their parts.
func byPart(documents []placed) map[int32][]columnar.Document {
	parts := map[int32][]columnar.Document{}
	for i := range documents {
		p := &documents[i]
		parts[p.part] = append(parts[p.part], p.Document)
	}
	return parts
}

// plain leaves the parts out.
func plain(documents []placed) []columnar.Document {
	out := make([]columnar.Document, 0, len(documents))
	for i := range documents {
		out = append(out, documents[i].Document)
	}
	return slices.Clip(out)
}
