package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
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
// index as it is, so that it has to be rebuilt from the table. What a later
// release has written is not damage.
func Damaged(err error) bool {
	return slices.ContainsFunc([]error{errManifest, errEntry, ErrGap, ErrReplaced, columnar.ErrFormat, columnar.ErrVersion},
		func(sign error) bool { return errors.Is(err, sign) })
}

// Index reads the index of one list of an organization.
type Index struct {
	Key
	Reader Reader
}

// Tail passes the entries after a sequence to each, decoded. It fails with
// [ErrGap] at a missing entry.
func (x Index) Tail(ctx context.Context, after uint64, consistent bool, each func(sequence uint64, e TailEntry) error) error {
	return x.Reader.TailAfter(ctx, x.Org, x.List.Name, after, consistent, func(stored StoredEntry) error {
		if stored.Sequence != after+1 {
			return fmt.Errorf("entry %d follows %d: %w", stored.Sequence, after, ErrGap)
		}
		after = stored.Sequence
		e, err := x.DecodeEntry(stored)
		if err != nil {
			return fmt.Errorf("entry %d of the tail: %w", after, err)
		}
		return each(after, e)
	})
}

// Open reads and decodes segments with the groups and the core.
func (x Index) Open(ctx context.Context, segments []*Segment, groups columnar.ColumnGroupSet) ([]*segment.Segment, error) {
	data, err := x.Read(ctx, segments, groups)
	if err != nil {
		return nil, err
	}
	opened := make([]*segment.Segment, len(data))
	for i, data := range data {
		s, err := segment.Decode(x.List.Schema, data[columnar.Core])
		for g := columnar.Core + 1; err == nil && int(g) < columnar.NumColumnGroups; g++ {
			if data[g] != nil {
				err = s.Decode(g, data[g])
			}
		}
		if err != nil {
			return nil, fmt.Errorf("segment %d of %d: %w", i+1, len(opened), err)
		}
		opened[i] = s
	}
	return opened, nil
}

// Read returns the groups of segments, by segment; groups that were not asked
// for are empty. It fails with [ErrReplaced] when a chunk has not, or no
// longer, the content that a segment names.
func (x Index) Read(ctx context.Context, segments []*Segment, groups columnar.ColumnGroupSet) ([][columnar.NumColumnGroups][]byte, error) {
	wanted := map[uint64]Chunk{}
	for _, s := range segments {
		for g := range all(groups) {
			for p := range s.pieces(g) { // none of a segment that is not stored yet
				wanted[p.Number] = p.Chunk
			}
		}
	}
	missing, bodies := slices.Collect(maps.Keys(wanted)), make(map[uint64][]byte, len(wanted))
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
			continue
		}
		for g := range all(groups) {
			out[i][g] = s.assemble(g, bodies)
		}
	}
	return out, nil
}

func all(groups columnar.ColumnGroupSet) iter.Seq[columnar.ColumnGroup] {
	return func(yield func(columnar.ColumnGroup) bool) {
		for g := range columnar.ColumnGroup(columnar.NumColumnGroups) {
			if groups.Has(g) && !yield(g) {
				return
			}
		}
	}
}

// piece is the part of a chunk, from one offset to another, that belongs to a
// column group.
type piece struct {
	Chunk
	from, to int
}

// pieces iterates over the pieces of a column group, in order.
func (s *Segment) pieces(g columnar.ColumnGroup) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		start := 0
		for _, size := range s.Groups[:g] {
			start += size
		}
		end, offset := start+s.Groups[g], 0
		for _, c := range s.Chunks {
			p := piece{c, max(start-offset, 0), min(end-offset, c.Size)}
			if offset += c.Size; p.from < p.to && !yield(p) {
				return
			}
		}
	}
}

// assemble puts a column group together, without a copy where one chunk holds
// it.
func (s *Segment) assemble(g columnar.ColumnGroup, bodies map[uint64][]byte) (data []byte) {
	for p := range s.pieces(g) {
		bytes := bodies[p.Number][p.from:p.to]
		if len(bytes) == s.Groups[g] {
			return bytes
		}
		data = append(data, bytes...)
	}
	return data
}
