package indexing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Segments of a part lie in tiers by their size, each up to eight times as
// large as the one before. As many as mergeFactor of a tier are merged into
// one, so that a document is written again only once a tier. That is enough
// where documents are added; where they are changed, a part of which more
// than half is dead is merged whole.
const (
	mergeFactor = 8
	firstTier   = 64 << 10 // bytes
	// fewest is how many large segments are merged at least, when the bound of
	// a job leaves no room for mergeFactor.
	fewest = 4
)

func (s *segment) tier() int {
	tier := 0
	for limit := firstTier; s.bytes() >= limit; limit *= mergeFactor {
		tier++
	}
	return tier
}

// due returns which segments of a part are to be merged, by their places in
// it; none when nothing is.
func (p *part) due() []int {
	places := make([]int, len(p.segments))
	for i := range places {
		places[i] = i
	}
	if len(places) == 0 {
		return nil
	}
	if len(places) > 1 && p.dead() && p.bytes() <= jobBytes {
		return places
	}
	tiers := map[int][]int{}
	for _, i := range places {
		tier := p.segments[i].tier()
		tiers[tier] = append(tiers[tier], i)
	}
	for tier := 0; len(tiers) > 0; tier++ {
		if len(tiers[tier]) >= mergeFactor {
			if fit := p.fitting(tiers[tier]); len(fit) >= fewest {
				return fit
			}
		}
		delete(tiers, tier)
	}
	return nil
}

// fitting returns as many of the segments, the smallest first, as one job may
// merge.
func (p *part) fitting(places []int) []int {
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(p.segments[a].bytes(), p.segments[b].bytes()) })
	size := 0
	for n, i := range places {
		if size += p.segments[i].bytes(); size > jobBytes {
			return places[:n]
		}
	}
	return places
}

// merge merges what is due, as far as there is room. It tells whether some of
// it is left.
func (j *job) merge(ctx context.Context, m *manifest) (merged, left bool, err error) {
	for i := range m.parts {
		p := &m.parts[i]
		for places := p.due(); len(places) > 0; places = p.due() {
			size := 0
			for _, s := range places {
				size += p.segments[s].bytes()
			}
			if !j.room(size) {
				left = true
				break
			}
			j.bytes += size
			err := j.mergeSegments(ctx, m, p, places)
			if errors.Is(err, columnar.ErrTooLarge) {
				break // they stay apart
			}
			if err != nil {
				return merged, left, fmt.Errorf("merge part %d: %w", p.number, err)
			}
			merged = true
		}
	}
	return merged, left, nil
}

// mergeSegments puts one segment in the place of several. A merge of all that
// a part has leaves out tombstones that are of no use any more; what it leaves
// is taken for live until it is counted again.
func (j *job) mergeSegments(ctx context.Context, m *manifest, p *part, places []int) error {
	sources := make([]*segment, len(places))
	for i, place := range places {
		sources[i] = &p.segments[place]
	}
	opened, err := j.open(ctx, sources, j.list.Schema.Groups())
	if err != nil {
		return err
	}
	whole := len(places) == len(p.segments)
	useless := int64(j.now().Add(-tombstoneUse))
	encoded, err := columnar.MergeSegments(j.list.Schema, opened, func(d *columnar.Document) bool {
		return whole && d.Deleted && d.Visible < useless
	})
	if err != nil {
		return err
	}
	before := p.rows()
	slices.Sort(places)
	for _, place := range slices.Backward(places) {
		m.release(j.now(), p.segments[place])
		p.segments = slices.Delete(p.segments, place, place+1)
	}
	if encoded.Rows > 0 {
		p.segments = append(p.segments, newSegment(encoded))
	}
	p.counted = max(p.counted-(before-p.rows()), p.live)
	if whole {
		p.counted, p.live = p.rows(), p.rows()
	}
	return nil
}
