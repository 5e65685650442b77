package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

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

// Open reads and decodes segments, with or without their text. It fails with
// [ErrReplaced] when a chunk has not, or no longer, the content that a segment names.
func (x Index) Open(ctx context.Context, segments []*Segment, text bool) ([]*segment.Segment, error) {
	bodies, err := x.chunks(ctx, segments, text)
	if err != nil {
		return nil, err
	}
	opened := make([]*segment.Segment, len(segments))
	for i, s := range segments {
		groups := s.groups(bodies, text)
		if opened[i], err = segment.Decode(x.List.Schema, groups[segment.Core], groups[segment.Text]); err != nil {
			return nil, fmt.Errorf("segment %d of %d: %w", i+1, len(opened), err)
		}
	}
	return opened, nil
}

// chunks reads the chunks of segments, or of their cores, by number.
func (x Index) chunks(ctx context.Context, segments []*Segment, text bool) (map[uint64][]byte, error) {
	wanted := map[uint64]Chunk{}
	for _, s := range segments {
		left := s.Bytes(text)
		for _, c := range s.Chunks { // none of a segment that is not stored yet
			if left > 0 {
				wanted[c.Number] = c
			}
			left -= c.Size
		}
	}
	missing, bodies := slices.Collect(maps.Keys(wanted)), make(map[uint64][]byte, len(wanted))
	// A consistent read shows what an eventually consistent one did not yet show.
	for _, consistent := range []bool{false, true} {
		err := x.Reader.Chunks(ctx, x.Org, x.List.Name, missing, consistent, func(c StoredChunk) error {
			switch want := wanted[c.Number]; {
			case want.ContentID != c.ContentID: // it was replaced, or is not there yet
			case want.Size != len(c.Body) || !c.named():
				return fmt.Errorf("the chunk %x has another content: %w", c.Number, columnar.ErrFormat)
			default:
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
	return bodies, nil
}

// groups cuts the groups of a segment out of its chunks; text is nil where there is none,
// or where it is not wanted.
func (s *Segment) groups(bodies map[uint64][]byte, text bool) (groups [segment.NumGroups][]byte) {
	if s.Encoded != nil {
		groups = s.Encoded.Groups
	} else {
		data := make([]byte, 0, s.Bytes(text))
		for _, c := range s.Chunks {
			data = append(data, bodies[c.Number]...)
		}
		core := s.Groups[segment.Core]
		groups[segment.Core], groups[segment.Text] = data[:core], data[core:]
	}
	if !text || s.Groups[segment.Text] == 0 {
		groups[segment.Text] = nil
	}
	return groups
}
