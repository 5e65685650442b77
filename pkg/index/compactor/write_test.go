package compactor

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

func TestGroupsAreCutWhereTheyAreLarge(t *testing.T) {
	for i, row := range []struct {
		groups [segment.NumGroups]int
		want   []int
	}{
		{[segment.NumGroups]int{100, 200}, []int{300}},
		{[segment.NumGroups]int{minOwnChunk, 200}, []int{minOwnChunk, 200}},
		{[segment.NumGroups]int{minOwnChunk - 1, 301}, []int{minOwnChunk + 300}},
		{[segment.NumGroups]int{minOwnChunk, minOwnChunk}, []int{minOwnChunk, minOwnChunk}},
		{[segment.NumGroups]int{maxChunkBytes, 0}, []int{maxChunkBytes}},
		{[segment.NumGroups]int{maxChunkBytes + 1, 0}, []int{maxChunkBytes, 1}},
		{[segment.NumGroups]int{1, maxChunkBytes}, []int{maxChunkBytes, 1}},
		{[segment.NumGroups]int{2*maxChunkBytes + minOwnChunk, 7}, []int{maxChunkBytes, maxChunkBytes, minOwnChunk, 7}},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if got := chunkSizes(row.groups); !slices.Equal(got, row.want) {
				t.Errorf("%v: got %v, want %v", row.groups, got, row.want)
			}
		})
	}
}

func TestFreeSlotsAreTakenWhenTheyFitAndTheirGraceIsOver(t *testing.T) {
	const now = value.Time(1_000_000)
	m := &index.Manifest{Free: []index.FreeChunk{
		{Chunk: index.Chunk{Number: 1, ContentID: 11, Size: 1000}, Since: now - 5}, {Chunk: index.Chunk{Number: 2, ContentID: 22, Size: 50_000}, Since: now - 5}, {Chunk: index.Chunk{Number: 3, ContentID: 33, Size: 60_000}, Since: now - 5}, {Chunk: index.Chunk{Number: 4, ContentID: 44, Size: 55_000}, Since: now + 5},
	}}
	s := &freeChunks{manifest: m, before: now}
	for _, row := range []struct {
		size int
		want uint64 // mark of the slot, 0 for one that was never used
	}{
		{52_000, 33}, {52_000, 22}, {52_000, 11}, {52_000, 0},
	} {
		t.Run(fmt.Sprintf("%v_%v", row.size, row.want), func(t *testing.T) {
			if got := s.take(row.size); got.ContentID != row.want {
				t.Errorf("a slot for %d bytes: got mark %d, want %d", row.size, got.ContentID, row.want)
			}
		})
	}
	if len(m.Free) != 1 || m.Free[0].Number != 4 {
		t.Errorf("left: got %v, want slot 4, whose grace is not over", m.Free)
	}
	if got := (&freeChunks{manifest: &index.Manifest{Free: []index.FreeChunk{{Chunk: index.Chunk{Number: 1, ContentID: 11, Size: 100_000}, Since: 0}}}, before: now}).take(1000); got.ContentID != 0 {
		t.Errorf("1,000 bytes over 100,000: got mark %d, want a slot of its own", got.ContentID)
	}
}

func TestSlotsBeyondTheBoundAreGivenUpSmallestFirst(t *testing.T) {
	m := &index.Manifest{}
	for i := range maxFree + 3 {
		m.Free = append(m.Free, index.FreeChunk{Chunk: index.Chunk{Number: uint64(i), ContentID: 1, Size: 10 + i}})
	}
	got := takeSurplus(m)
	sizes := []int{}
	for _, c := range got {
		sizes = append(sizes, c.Size)
	}
	if slices.Sort(sizes); !slices.Equal(sizes, []int{10, 11, 12}) || len(m.Free) != maxFree {
		t.Errorf("got %v and %d left, want the three smallest given up", sizes, len(m.Free))
	}
}
