package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

const (
	// maxEntry bounds the documents of a tail entry, in bytes before they are
	// compressed, well under the 400 KB of an item. A single document is little
	// larger than columnar.MaxText.
	maxEntry = 300 << 10
	// maxUnpacked bounds the bytes that an entry or a manifest may unpack to.
	maxUnpacked = 1 << 20
)

// Change is a document with its partition.
type Change struct {
	Partition int32
	columnar.Document
}

// TailEntry is the content of a tail entry: the documents that one batch of
// the stream changed, or the notice that a rebuild has replaced the manifest,
// so that what was read from an earlier one may be wrong.
type TailEntry struct {
	At      value.Time // when it was appended; after the At of the entry before it
	Changes []Change
	Size    int    // bytes of the documents in their encoded form
	Rebuilt uint64 // version of the manifest; 0 for an entry of documents
	Layout  Layout // of that manifest
}

// Replaces reports whether the entry says that another manifest is to be read for
// the list than this one: a later version of it or, where it is of another layout,
// the first of the list's own.
func (e *TailEntry) Replaces(k Key, m *Manifest, version uint64) bool {
	if m.Layout == e.Layout {
		return e.Rebuilt > version
	}
	return e.Rebuilt > 0 && e.Layout == k.Layout()
}

// Documents are the changed documents without their partitions.
func (e *TailEntry) Documents() []columnar.Document {
	out := make([]columnar.Document, len(e.Changes))
	for i := range e.Changes {
		out[i] = e.Changes[i].Document
	}
	return out
}

// The kinds of entries, as the package's documentation describes them.
const (
	entryPlain         = 0
	entryPacked        = 1
	entryLegacyRebuilt = 2
	entryRebuilt       = 3
)

var errEntry = errors.New("not an entry of the tail")

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

// PackEntries packs changes into as few entries as the bound allows. They get
// their checksum from [Key.SealEntry].
func PackEntries(changes []Change) [][]byte {
	var out [][]byte
	var content []byte
	for i := range changes {
		next := binary.AppendVarint(nil, int64(changes[i].Partition))
		next = columnar.AppendDocument(next, &changes[i].Document)
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

func pack(content []byte) []byte {
	kind, body := byte(entryPacked), packer().EncodeAll(content, nil)
	if len(body) >= len(content) {
		kind, body = entryPlain, content
	}
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(content))), body...)
}

// unpack undoes pack, for the rest of Data. It fails unless that has so many bytes.
func (c *codec) unpack(kind byte, size int) {
	if kind == entryPacked {
		var err error
		c.Data, err = unpacker().DecodeAll(c.Data, make([]byte, 0, size))
		c.Fail(err != nil)
	}
	c.Fail(len(c.Data) != size)
}

// RebuiltEntry is the entry that says that a rebuild has put the version of the
// list's manifest.
func (k Key) RebuiltEntry(version uint64) []byte {
	kind, c, l := byte(entryRebuilt), codec{}, k.Layout()
	if c.uvarint(&version); l.Format == legacyFormat {
		kind = entryLegacyRebuilt
	} else {
		c.count(&l.Format)
		c.count(&l.Columns)
	}
	return append([]byte{kind, byte(len(c.Data))}, c.Data...)
}

// SealEntry adds the checksum that an entry has at its position in the tail.
func (k Key) SealEntry(sequence uint64, entry []byte) []byte {
	return seal(k.entryContext(sequence), entry)
}

func (k Key) entryContext(sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(slices.Concat(k.Org[:], []byte(k.List.Name)), sequence)
}

// DecodeEntry decodes an entry. Its documents became visible when it was
// appended.
func (k Key) DecodeEntry(stored StoredEntry) (TailEntry, error) {
	body, ok := unseal(k.entryContext(stored.Sequence), stored.Body)
	if !ok {
		return TailEntry{}, fmt.Errorf("checksum of %d bytes: %w", len(stored.Body), errEntry)
	}
	c, kind, size := reading(body), []byte{0}, 0
	c.fixed(kind)
	c.count(&size)
	if !c.Bad && kind[0] > entryRebuilt {
		return TailEntry{}, fmt.Errorf("kind %d, this program knows %d: %w", kind[0], entryRebuilt, columnar.ErrNewer)
	}
	if c.Bad || size > maxUnpacked {
		return TailEntry{}, fmt.Errorf("kind %d, %d bytes: %w", kind[0], size, errEntry)
	}
	if c.unpack(kind[0], size); c.Bad {
		return TailEntry{}, fmt.Errorf("not %d bytes: %w", size, errEntry)
	}
	if kind[0] < entryLegacyRebuilt {
		return k.decodeChanges(&c, stored.At)
	}
	e := TailEntry{At: stored.At, Layout: Layout{legacyFormat, k.Layout().Columns}}
	if c.uvarint(&e.Rebuilt); kind[0] == entryRebuilt {
		c.count(&e.Layout.Format)
		c.count(&e.Layout.Columns)
	}
	if c.Bad || len(c.Data) > 0 {
		return TailEntry{}, fmt.Errorf("version: %w", errEntry)
	}
	return e, nil
}

func (k Key) decodeChanges(c *codec, at value.Time) (TailEntry, error) {
	e := TailEntry{At: at, Size: len(c.Data)}
	for len(c.Data) > 0 {
		partition := int64(0)
		if c.varint(&partition); c.Bad {
			return TailEntry{}, fmt.Errorf("partition: %w", errEntry)
		}
		document, rest, err := columnar.DecodeDocument(k.List.Schema, c.Data)
		if err != nil {
			return TailEntry{}, err
		}
		document.Visible, c.Data = int64(at), rest
		e.Changes = append(e.Changes, Change{int32(partition), document}) //nolint:gosec // the number that we wrote
	}
	return e, nil
}
