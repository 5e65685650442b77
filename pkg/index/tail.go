package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// maxEntry bounds the documents of a tail entry, in bytes before they are
// compressed, well under the 400 KB of an item. A single document is little
// larger than columnar.MaxText.
const maxEntry = 300 << 10

// Change is a document with its partition.
type Change struct {
	Partition int32
	columnar.Document
}

// TailEntry is the content of a tail entry: the documents that one batch of
// the stream changed, or the notice that a rebuild has replaced the manifest,
// so that a view of an earlier one may be wrong.
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
	entryPlain   = 0
	entryPacked  = 1
	entryRebuilt = 2
)

var errEntry = errors.New("not an entry of the tail")

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
	if body := packer().EncodeAll(content, []byte{entryPacked}); len(body) <= len(content) {
		return body
	}
	return append([]byte{entryPlain}, content...)
}

// RebuiltEntry is the entry that says that a rebuild has put the version of the
// list's manifest.
func (k Key) RebuiltEntry(version uint64) []byte {
	l := k.Layout()
	entry := binary.AppendUvarint([]byte{entryRebuilt}, version)
	for _, n := range []int{l.Format, l.Columns} {
		entry = binary.AppendUvarint(entry, uint64(n)) //nolint:gosec // never negative
	}
	return entry
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
	if len(body) == 0 {
		return TailEntry{}, fmt.Errorf("no kind: %w", errEntry)
	}
	kind, content := body[0], body[1:]
	switch kind {
	case entryPlain:
	case entryPacked:
		var err error
		if content, err = unpacker().DecodeAll(content, nil); err != nil {
			return TailEntry{}, fmt.Errorf("%w: %w", errEntry, err)
		}
	case entryRebuilt:
		return decodeRebuilt(content, stored.At)
	default:
		return TailEntry{}, fmt.Errorf("kind %d: %w", kind, columnar.ErrNewer)
	}
	return k.decodeChanges(content, stored.At)
}

func decodeRebuilt(content []byte, at value.Time) (TailEntry, error) {
	r := strictbinary.Reader{Data: content}
	e := TailEntry{At: at, Rebuilt: r.Uvarint()}
	e.Layout = Layout{int(r.Uvarint()), int(r.Uvarint())} //nolint:gosec // the numbers that we wrote
	if r.Bad || len(r.Data) > 0 {
		return TailEntry{}, fmt.Errorf("version: %w", errEntry)
	}
	return e, nil
}

func (k Key) decodeChanges(content []byte, at value.Time) (TailEntry, error) {
	r, e := strictbinary.Reader{Data: content}, TailEntry{At: at, Size: len(content)}
	for len(r.Data) > 0 {
		partition := r.Varint()
		if r.Bad {
			return TailEntry{}, fmt.Errorf("partition: %w", errEntry)
		}
		document, rest, err := columnar.DecodeDocument(k.List.Schema, r.Data)
		if err != nil {
			return TailEntry{}, err
		}
		document.Visible, r.Data = int64(at), rest
		e.Changes = append(e.Changes, Change{int32(partition), document}) //nolint:gosec // the number that we wrote
	}
	return e, nil
}
