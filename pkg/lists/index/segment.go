package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// Core is the column group that every query reads.
const Core = columnar.ColumnGroupSet(1) << columnar.Core

var (
	// ErrGap says that the tail lacks an entry.
	ErrGap = errors.New("an entry of the tail is missing")
	// ErrReplaced says that chunks are gone or have another content: by now
	// another manifest is live or, if not, the index is damaged.
	ErrReplaced = errors.New("not the chunks that the manifest names")
)

// Damaged reports whether an error means that this program cannot read an
// index as it is, so that it has to be rebuilt from the table.
func Damaged(err error) bool {
	return slices.ContainsFunc([]error{errManifest, errEntry, ErrGap, ErrReplaced, columnar.ErrFormat, columnar.ErrVersion},
		func(sign error) bool { return errors.Is(err, sign) })
}

// Index reads the index of one list of an organization.
type Index struct {
	Key
	Reader Reader
}

// Load reads the live manifest and its version. Where there is none, the
// manifest is empty and the version 0.
func (x Index) Load(ctx context.Context) (*Manifest, uint64, error) {
	stored, err := x.Reader.Manifest(ctx, x.Org, x.List.Name, LiveManifest)
	if err != nil || stored == nil {
		return &Manifest{}, 0, err
	}
	m, err := x.DecodeManifest(stored.Body)
	return m, stored.Version, err
}

// Tail passes the entries after a sequence to each, decoded. It fails with
// [ErrGap] at a missing entry.
func (x Index) Tail(ctx context.Context, after uint64, consistent bool, each func(sequence uint64, e TailEntry) error) error {
	return x.Reader.TailAfter(ctx, x.Org, x.List.Name, after, consistent, func(stored StoredEntry) error {
		if stored.Sequence != after+1 {
			return fmt.Errorf("entry %d follows %d: %w", stored.Sequence, after, ErrGap)
		}
		after = stored.Sequence
		e, err := x.Decode(stored)
		if err != nil {
			return err
		}
		return each(after, e)
	})
}

// Decode decodes an entry and sets the time at which its documents became
// visible.
func (k Key) Decode(stored StoredEntry) (TailEntry, error) {
	e, err := k.DecodeEntry(stored.Sequence, stored.Body)
	if err != nil {
		return TailEntry{}, fmt.Errorf("entry %d of the tail: %w", stored.Sequence, err)
	}
	for i := range e.Changes {
		e.Changes[i].Visible = int64(stored.At)
	}
	return e, nil
}

// Open reads and decodes segments with the groups and the core.
func (x Index) Open(ctx context.Context, segments []*Segment, groups columnar.ColumnGroupSet) ([]*segment.Segment, error) {
	data, err := x.Read(ctx, segments, groups)
	if err != nil {
		return nil, err
	}
	opened := make([]*segment.Segment, len(data))
	for i := range data {
		if opened[i], err = x.decodeSegment(data[i]); err != nil {
			return nil, fmt.Errorf("segment %d of %d: %w", i+1, len(data), err)
		}
	}
	return opened, nil
}

func (k Key) decodeSegment(groups [columnar.NumColumnGroups][]byte) (*segment.Segment, error) {
	s, err := segment.Decode(k.List.Schema, groups[columnar.Core])
	if err != nil {
		return nil, err
	}
	for g := columnar.Core + 1; int(g) < columnar.NumColumnGroups; g++ {
		if groups[g] == nil {
			continue
		}
		if err := s.Decode(g, groups[g]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Read returns the groups of segments, by segment; groups that were not asked
// for are empty. It fails with [ErrReplaced] when a chunk has not, or no
// longer, the content that a segment names.
func (x Index) Read(ctx context.Context, segments []*Segment, groups columnar.ColumnGroupSet) ([][columnar.NumColumnGroups][]byte, error) {
	wanted := map[uint64]Chunk{}
	var missing []uint64
	for _, s := range segments {
		offset := 0
		for _, c := range s.Chunks { // none of a segment that is not stored yet
			if s.holds(offset, c.Size, groups) {
				wanted[c.Number] = c
				missing = append(missing, c.Number)
			}
			offset += c.Size
		}
	}
	bodies := make(map[uint64][]byte, len(wanted))
	// A consistent read shows what an eventually consistent one did not yet show.
	for _, consistent := range []bool{false, true} {
		err := x.Reader.Chunks(ctx, x.Org, x.List.Name, missing, consistent, func(c StoredChunk) error {
			if want := wanted[c.Number]; want.ContentID == c.ContentID && want.Size == len(c.Body) {
				bodies[c.Number] = c.Body
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(missing, func(number uint64) bool { return bodies[number] != nil })
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%d of %d chunks: %w", len(missing), len(wanted), ErrReplaced)
	}
	out := make([][columnar.NumColumnGroups][]byte, len(segments))
	for i, s := range segments {
		if s.Encoded != nil {
			out[i] = s.Encoded.Groups
		} else {
			out[i] = s.assemble(bodies, groups)
		}
	}
	return out, nil
}

// holds reports whether the bytes from offset on belong to one of the groups.
func (s *Segment) holds(offset, size int, groups columnar.ColumnGroupSet) bool {
	start := 0
	for g, length := range s.Groups {
		if groups.Has(columnar.ColumnGroup(g)) && offset < start+length && start < offset+size { //nolint:gosec // one of three
			return true
		}
		start += length
	}
	return false
}

// assemble puts the groups together from the chunks that hold them.
func (s *Segment) assemble(bodies map[uint64][]byte, groups columnar.ColumnGroupSet) (out [columnar.NumColumnGroups][]byte) {
	start := 0
	for g, length := range s.Groups {
		if groups.Has(columnar.ColumnGroup(g)) && length > 0 { //nolint:gosec // one of three
			out[g] = s.slice(bodies, start, start+length)
		}
		start += length
	}
	return out
}

// slice returns the bytes of a segment between two offsets, without a copy
// where one chunk holds them.
func (s *Segment) slice(bodies map[uint64][]byte, from, to int) []byte {
	var data []byte
	offset := 0
	for _, c := range s.Chunks {
		lo, hi := max(from, offset), min(to, offset+c.Size)
		if lo < hi {
			piece := bodies[c.Number][lo-offset : hi-offset]
			if len(piece) == to-from {
				return piece
			}
			data = append(data, piece...)
		}
		offset += c.Size
	}
	return data
}
