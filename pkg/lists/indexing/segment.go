package indexing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// maxChunk bounds a chunk in bytes, under the 400 KB of an item.
	maxChunk = 380 << 10
	// apart is from which size on a group is not put into one chunk with the
	// next, so that either can be read without the other.
	apart = 64 << 10
	// freeGrace is how long a replaced chunk keeps its content, for readers
	// that came with the manifest that names it.
	freeGrace = time.Minute
	// maxFree bounds the free slots that a manifest remembers. What is beyond
	// it is deleted.
	maxFree = 512
	// chunkWriters is how many chunks are written at a time.
	chunkWriters = 8
)

// cuts returns the sizes of the chunks that groups are cut into.
func cuts(groups [columnar.Groups]int) []int {
	var sizes []int
	current := 0
	for _, left := range groups {
		if current >= apart && left > 0 {
			sizes, current = append(sizes, current), 0
		}
		for current+left > maxChunk {
			sizes = append(sizes, maxChunk)
			left -= maxChunk - current
			current = 0
		}
		current += left
	}
	if current > 0 {
		sizes = append(sizes, current)
	}
	return sizes
}

func newSegment(e columnar.Encoded) segment {
	s := segment{rows: e.Rows, tombstones: e.Tombstones, encoded: &e}
	for g, data := range e.Groups {
		s.groups[g] = len(data)
	}
	return s
}

// storage writes and reads the chunks of one list.
type storage struct {
	table *dynamo.Table
	org   value.ID
	list  *List
	clock func() time.Time
}

// load reads the live manifest and its version; an absent one is empty, and of
// version 0.
func (s storage) load(ctx context.Context) (*manifest, uint64, error) {
	stored, err := s.table.Manifest(ctx, s.org, s.list.Name, dynamo.LiveManifest)
	if err != nil || stored == nil {
		return &manifest{}, 0, err
	}
	m, err := decodeManifest(s.org, s.list, stored.Body)
	return m, stored.Version, err
}

// tail hands the entries after a sequence to each, decoded and without a gap.
func (s storage) tail(ctx context.Context, after uint64, consistent bool, each func(sequence uint64, e tailEntry) error) error {
	return s.table.TailAfter(ctx, s.org, s.list.Name, after, consistent, func(stored dynamo.TailEntry) error {
		found, err := s.next(after, stored)
		if err != nil {
			return err
		}
		after = stored.Sequence
		return each(after, found)
	})
}

// store writes segments that are not stored yet into slots of the manifest.
// They count from the moment at which a manifest that names them is put. Start
// is when the job began: what it has freed itself is not written over, however
// long it took, for the manifest that names it still stands.
func (s storage) store(ctx context.Context, m *manifest, start time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(chunkWriters)
	slots := &slots{manifest: m, usable: value.TimeOf(start).Add(-freeGrace)}
	for p := range m.parts {
		for i := range m.parts[p].segments {
			seg := &m.parts[p].segments[i]
			if seg.encoded == nil {
				continue
			}
			data := slices.Concat(seg.encoded.Groups[:]...)
			for _, size := range cuts(seg.groups) {
				seg.chunks = append(seg.chunks, chunk{size: size})
			}
			for c := range seg.chunks {
				body := data[:seg.chunks[c].size]
				data = data[len(body):]
				group.Go(func() (err error) {
					seg.chunks[c], err = s.put(ctx, slots, body)
					return err
				})
			}
			seg.encoded = nil
		}
	}
	return group.Wait()
}

// put writes a chunk to a slot, trying others where somebody else has been.
func (s storage) put(ctx context.Context, slots *slots, body []byte) (chunk, error) {
	c := chunk{mark: rand.Uint64() | 1, size: len(body)} //nolint:gosec // tells contents apart, keeps no secret
	for {
		at := slots.take(c.size)
		c.slot = at.slot
		done, err := s.table.PutChunk(ctx, s.org, s.list.Name, dynamo.Chunk{Slot: c.slot, Mark: c.mark, Body: body}, at.mark)
		if err != nil || done {
			return c, err
		}
	}
}

// read returns the groups of segments, by segment, those not asked for empty.
// It fails with errReplaced when a chunk is not, or no longer, what the
// segments say.
func (s storage) read(ctx context.Context, segments []*segment, groups columnar.GroupSet) ([][columnar.Groups][]byte, error) {
	wanted := map[uint64]chunk{}
	var order []uint64
	for _, seg := range segments {
		offset := 0
		for _, c := range seg.chunks { // none of a segment that is not stored yet
			if seg.holds(offset, c.size, groups) {
				wanted[c.slot] = c
				order = append(order, c.slot)
			}
			offset += c.size
		}
	}
	bodies := make(map[uint64][]byte, len(wanted))
	for _, consistent := range []bool{false, true} {
		err := s.table.Chunks(ctx, s.org, s.list.Name, order, consistent, func(c dynamo.Chunk) error {
			if want := wanted[c.Slot]; want.mark == c.Mark && want.size == len(c.Body) {
				bodies[c.Slot] = c.Body
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		// What an eventually consistent read did not show yet, a consistent one does.
		order = slices.DeleteFunc(order, func(slot uint64) bool { return bodies[slot] != nil })
	}
	if len(order) > 0 {
		return nil, fmt.Errorf("%d of %d chunks: %w", len(order), len(wanted), errReplaced)
	}
	out := make([][columnar.Groups][]byte, len(segments))
	for i, seg := range segments {
		if seg.encoded != nil {
			out[i] = seg.encoded.Groups
		} else {
			out[i] = seg.assemble(bodies, groups)
		}
	}
	return out, nil
}

// holds says whether the bytes from offset on belong to one of the groups.
func (s *segment) holds(offset, size int, groups columnar.GroupSet) bool {
	start := 0
	for g, length := range s.groups {
		if groups.Has(columnar.Group(g)) && offset < start+length && start < offset+size { //nolint:gosec // one of three
			return true
		}
		start += length
	}
	return false
}

// assemble puts the groups together from the chunks that hold them.
func (s *segment) assemble(bodies map[uint64][]byte, groups columnar.GroupSet) (out [columnar.Groups][]byte) {
	start := 0
	for g, length := range s.groups {
		if groups.Has(columnar.Group(g)) && length > 0 { //nolint:gosec // one of three
			out[g] = s.slice(bodies, start, start+length)
		}
		start += length
	}
	return out
}

// slice returns the bytes of a segment between two offsets, without a copy
// where one chunk holds them.
func (s *segment) slice(bodies map[uint64][]byte, from, to int) []byte {
	var data []byte
	offset := 0
	for _, c := range s.chunks {
		lo, hi := max(from, offset), min(to, offset+c.size)
		if lo < hi {
			piece := bodies[c.slot][lo-offset : hi-offset]
			if len(piece) == to-from {
				return piece
			}
			data = append(data, piece...)
		}
		offset += c.size
	}
	return data
}

// decode turns what read returned into a segment with those groups.
func (s storage) decode(groups [columnar.Groups][]byte) (*columnar.Segment, error) {
	seg, err := columnar.DecodeSegment(s.list.Schema, groups[columnar.Core])
	if err != nil {
		return nil, err
	}
	for g := columnar.Core + 1; int(g) < columnar.Groups; g++ {
		if groups[g] == nil {
			continue
		}
		if err := seg.Decode(g, groups[g]); err != nil {
			return nil, err
		}
	}
	return seg, nil
}

// open reads and decodes segments with the groups asked for.
func (s storage) open(ctx context.Context, segments []*segment, groups columnar.GroupSet) ([]*columnar.Segment, error) {
	data, err := s.read(ctx, segments, groups)
	if err != nil {
		return nil, err
	}
	opened := make([]*columnar.Segment, len(data))
	for i := range data {
		if opened[i], err = s.decode(data[i]); err != nil {
			return nil, fmt.Errorf("segment %d of %d: %w", i+1, len(data), err)
		}
	}
	return opened, nil
}
