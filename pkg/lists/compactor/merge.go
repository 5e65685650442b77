package compactor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/index"
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
	for limit := firstTierSize; s.Bytes() >= limit; limit *= mergeFactor {
		tier++
	}
	return tier
}

// toMerge returns the positions of the segments of a partition that should be
// merged next; none when that is nothing.
func toMerge(p *index.Partition) []int {
	var all []int
	tiers := map[int][]int{}
	for i := range p.Segments {
		all = append(all, i)
		tier := tier(&p.Segments[i])
		tiers[tier] = append(tiers[tier], i)
	}
	if len(all) > 1 && mostlyDead(p) && p.Bytes() <= maxJobBytes {
		return all
	}
	for tier := 0; len(tiers) > 0; tier++ {
		if len(tiers[tier]) >= mergeFactor {
			if fit := fitting(p, tiers[tier]); len(fit) >= minMerged {
				return fit
			}
		}
		delete(tiers, tier)
	}
	return nil
}

// fitting returns as many of the segments as one job may merge, the smallest
// first.
func fitting(p *index.Partition, positions []int) []int {
	slices.SortStableFunc(positions, func(a, b int) int { return cmp.Compare(p.Segments[a].Bytes(), p.Segments[b].Bytes()) })
	size := 0
	for n, i := range positions {
		if size += p.Segments[i].Bytes(); size > maxJobBytes {
			return positions[:n]
		}
	}
	return positions
}

// merge merges what should be merged, as far as the job has room.
func (j *job) merge(ctx context.Context, m *index.Manifest) error {
	for i := range m.Partitions {
		p := &m.Partitions[i]
		for positions := toMerge(p); len(positions) > 0; positions = toMerge(p) {
			size := 0
			for _, s := range positions {
				size += p.Segments[s].Bytes()
			}
			if !j.hasRoom(size) {
				j.more = true
				break
			}
			j.read += size
			err := j.mergeSegments(ctx, m, p, positions)
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
// partition leaves out tombstones that are no longer useful; the rest counts as
// live until it is counted again.
func (j *job) mergeSegments(ctx context.Context, m *index.Manifest, p *index.Partition, positions []int) error {
	sources := make([]*index.Segment, len(positions))
	for i, position := range positions {
		sources[i] = &p.Segments[position]
	}
	opened, err := j.Open(ctx, sources, j.List.Schema.ColumnGroups())
	if err != nil {
		return err
	}
	whole := len(positions) == len(p.Segments)
	useless := int64(j.now().Add(-tombstoneUse))
	encoded, err := segment.Merge(j.List.Schema, opened, func(d *columnar.Document) bool {
		return whole && d.Deleted && d.Visible < useless
	})
	if err != nil {
		return err
	}
	before := p.Rows()
	slices.Sort(positions)
	for _, position := range slices.Backward(positions) {
		release(m, j.now(), p.Segments[position])
		p.Segments = slices.Delete(p.Segments, position, position+1)
	}
	if encoded.Rows > 0 {
		p.Segments = append(p.Segments, segmentOf(encoded))
	}
	p.Counted = max(p.Counted-(before-p.Rows()), p.Live)
	if whole {
		p.Counted, p.Live = p.Rows(), p.Rows()
	}
	return nil
}
