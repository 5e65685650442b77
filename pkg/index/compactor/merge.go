package compactor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// Segments of a partition belong to tiers by their size, each tier up to eight
// times as large as the one before. Once a tier has mergeFactor segments they
// are merged into one, so that a document is written again only once per tier.
// That suffices where documents are added; where they are changed, a partition
// with mostly dead rows is merged whole.
const (
	mergeFactor   = 8
	firstTierSize = 64 << 10 // bytes
	// minMerged is how many large segments are merged at least, when the bound
	// of a job leaves no room for mergeFactor.
	minMerged = 4
)

func tier(s *index.Segment) int {
	tier := 0
	for limit := firstTierSize; s.Bytes(true) >= limit; limit *= mergeFactor {
		tier++
	}
	return tier
}

// toMerge returns the segments of a partition that should be merged next; none
// when there is nothing to merge.
func toMerge(schema *columnar.Schema, p *index.Partition) []*index.Segment {
	if len(p.Segments) > 1 && mostlyDead(p) && len(fitting(schema, p.Segments)) == len(p.Segments) {
		return p.Segments
	}
	tiers := map[int][]*index.Segment{}
	for _, s := range p.Segments {
		tier := tier(s)
		tiers[tier] = append(tiers[tier], s)
	}
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		if len(tiers[tier]) >= mergeFactor {
			if fit := fitting(schema, tiers[tier]); len(fit) >= minMerged {
				return fit
			}
		}
	}
	return nil
}

// fitting returns as many of the segments as one job may merge, the smallest
// first: maxJobBytes as they are stored, maxJobMemory in memory.
func fitting(schema *columnar.Schema, segments []*index.Segment) []*index.Segment {
	sorted := slices.SortedStableFunc(slices.Values(segments), func(a, b *index.Segment) int { return cmp.Compare(a.Bytes(true), b.Bytes(true)) })
	size, memory := 0, int64(0)
	for n, s := range sorted {
		size += s.Bytes(true)
		memory += s.Memory(schema, true)
		if size > maxJobBytes || memory > maxJobMemory {
			return sorted[:n]
		}
	}
	return sorted
}

// merge merges what should be merged, as far as the job has room.
func (j *job) merge(ctx context.Context, m *index.Manifest) error {
	for _, p := range m.Partitions {
		for sources := toMerge(j.List.Schema, p); len(sources) > 0; sources = toMerge(j.List.Schema, p) {
			size := 0
			for _, s := range sources {
				size += s.Bytes(true)
			}
			if !j.hasRoom(size) {
				j.more = true
				break
			}
			j.read += size
			err := j.mergeSegments(ctx, m, p, sources)
			if errors.Is(err, segment.ErrTooLarge) {
				break // they stay apart
			}
			if err != nil {
				return fmt.Errorf("merge partition %d: %w", p.Number, err)
			}
			j.changed = true
		}
	}
	return nil
}

// mergeSegments replaces several segments by one. A merge of all segments of a
// partition leaves out tombstones past their use; the rest counts as
// live until it is counted again.
func (j *job) mergeSegments(ctx context.Context, m *index.Manifest, p *index.Partition, sources []*index.Segment) error {
	opened, err := j.Open(ctx, sources, true)
	if err != nil {
		return err
	}
	whole := len(sources) == len(p.Segments)
	encoded, err := segment.Merge(j.List.Schema, opened, j.dropped(whole))
	if err != nil {
		return err
	}
	before := p.Rows()
	release(m, j.now(), sources...)
	p.Segments = slices.DeleteFunc(slices.Clone(p.Segments), func(s *index.Segment) bool { return slices.Contains(sources, s) })
	if encoded.Rows > 0 {
		p.Segments = append(p.Segments, segmentOf(encoded))
	}
	p.Counted = max(p.Counted-(before-p.Rows()), p.Live)
	if whole {
		p.Counted, p.Live = p.Rows(), p.Rows()
	}
	return nil
}

// divide divides partitions that have grown too large into parts, by ID.
func (j *job) divide(ctx context.Context, m *index.Manifest) error {
	for _, p := range slices.Clone(m.Partitions) {
		rows := j.List.DividedRows(len(m.Partitions))
		if !worthDividing(p, rows) {
			continue
		}
		if len(fitting(j.List.Schema, p.Segments)) < len(p.Segments) {
			j.logTooLarge(ctx, p)
			continue
		}
		if !j.hasRoom(p.Bytes(true)) {
			j.more = true
			continue
		}
		j.read += p.Bytes(true)
		if err := j.dividePartition(ctx, m, p, rows); err != nil {
			return fmt.Errorf("divide partition %d: %w", p.Number, err)
		}
		j.changed = true
	}
	return nil
}

// worthDividing reports whether a partition has half as many rows more than a part
// gets: live ones as of the last count, or so many since then that it is worth
// finding out.
func worthDividing(p *index.Partition, rows int) bool {
	most := rows + rows/2
	return p.Rows() > most && (p.Live > most || p.Rows()-p.Counted >= rows/4)
}

// dividePartition replaces a partition by its parts, each of one segment. It may
// turn out that the dead rows were many, so that there is one part.
func (j *job) dividePartition(ctx context.Context, m *index.Manifest, p *index.Partition, rows int) error {
	opened, err := j.Open(ctx, p.Segments, true)
	if err != nil {
		return err
	}
	divided, err := segment.Divide(j.List.Schema, opened, j.dropped(true), rows)
	if err != nil {
		return err
	}
	release(m, j.now(), p.Segments...)
	parts := make([]*index.Partition, len(divided))
	for i := range divided {
		part := &index.Partition{Number: p.Number, From: divided[i].From}
		if i == 0 {
			part.From = p.From
		}
		if divided[i].Rows > 0 {
			part.Segments = append(part.Segments, segmentOf(divided[i].Encoded))
		}
		part.Counted, part.Live = part.Rows(), part.Rows()
		parts[i], j.recent[part] = part, j.recent[p]
	}
	m.Divide(p, parts...)
	return nil
}

// dropped says which documents a merge leaves out: of all segments of a partition,
// the tombstones that are no longer useful.
func (j *job) dropped(whole bool) func(*columnar.Document) bool {
	useless := int64(j.now().Add(-tombstoneUse))
	return func(d *columnar.Document) bool { return whole && d.Deleted && d.Visible < useless }
}
