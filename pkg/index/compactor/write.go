package compactor

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

const (
	// maxChunkBytes is below the 400 KB of an item.
	maxChunkBytes = 380 << 10
	// minOwnChunk is the size from which a column group does not share a chunk
	// with the next, so that either can be read without the other.
	minOwnChunk = 64 << 10
	// freeGrace is how long a replaced chunk keeps its content, for readers
	// that have read the manifest that names it.
	freeGrace = time.Minute
	// maxFree bounds the free chunks that a manifest remembers; more are deleted.
	maxFree = 512
	// chunkWriters is how many chunks are written at a time.
	chunkWriters = 8
)

func encode(list *index.List, documents []columnar.Document) *index.Segment {
	return segmentOf(segment.Encode(list.Schema, documents))
}

func segmentOf(e segment.Encoded) *index.Segment {
	s := &index.Segment{Rows: e.Rows, Tombstones: e.Tombstones, Unpacked: e.Unpacked, Encoded: &e}
	for g, data := range e.Groups {
		s.Groups[g] = len(data)
	}
	return s
}

// chunkSizes returns the sizes of the chunks that column groups are cut into.
func chunkSizes(groups [segment.NumGroups]int) []int {
	var sizes []int
	current := 0
	for _, left := range groups {
		if current >= minOwnChunk && left > 0 {
			sizes, current = append(sizes, current), 0
		}
		for current+left > maxChunkBytes {
			sizes = append(sizes, maxChunkBytes)
			left -= maxChunkBytes - current
			current = 0
		}
		current += left
	}
	if current > 0 {
		sizes = append(sizes, current)
	}
	return sizes
}

// commit stores new segments and replaces the version of the live manifest. It
// reports false when another job has put a manifest meanwhile.
func (j *job) commit(ctx context.Context, m *index.Manifest, version uint64) (done bool, err error) {
	if err := j.store(ctx, m); err != nil {
		return false, err
	}
	surplus := takeSurplus(m)
	done, err = j.storage.PutManifest(ctx, j.Org, j.List.Name, j.Layout().Live(), index.StoredManifest{
		Version: version + 1, Covered: m.Covered, CoveredAt: m.CoveredAt, At: j.now(), Body: j.EncodeManifest(m),
	})
	if err != nil || !done {
		return false, err
	}
	for _, c := range surplus {
		if err := j.storage.DeleteChunk(ctx, j.Org, j.List.Name, c.Number, c.ContentID); err != nil {
			return false, err
		}
	}
	return true, nil
}

// store writes the segments that are not stored yet. They count once a manifest
// that names them is put. What the job itself has freed is not overwritten,
// however long the job took: the manifest that names it is still live.
func (j *job) store(ctx context.Context, m *index.Manifest) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(chunkWriters)
	numbers := &freeChunks{manifest: m, before: value.TimeOf(j.start).Add(-freeGrace)}
	for _, p := range m.Partitions {
		for _, s := range p.Segments {
			if s.Encoded == nil {
				continue
			}
			data := slices.Concat(s.Encoded.Groups[:]...)
			sizes := chunkSizes(s.Groups)
			s.Chunks = make([]index.Chunk, len(sizes))
			for i, size := range sizes {
				body := data[:size]
				data = data[size:]
				group.Go(func() (err error) {
					s.Chunks[i], err = j.put(ctx, numbers, body)
					return err
				})
			}
			s.Encoded = nil
		}
	}
	return group.Wait()
}

// put writes a chunk, to another number when something else has used the first.
func (j *job) put(ctx context.Context, numbers *freeChunks, body []byte) (index.Chunk, error) {
	contentID := index.NewContentID(body)
	for {
		old := numbers.take(len(body))
		chunk := index.StoredChunk{Number: old.Number, ContentID: contentID, Body: body}
		done, err := j.storage.PutChunk(ctx, j.Org, j.List.Name, chunk, old.ContentID)
		if err != nil || done {
			return index.Chunk{Number: old.Number, ContentID: contentID, Size: len(body)}, err
		}
	}
}

// freeChunks hands out numbers for new chunks: of free chunks, which it takes
// off the manifest, or random ones that nothing has used yet. Writers that know
// nothing of each other thus do not collide.
type freeChunks struct {
	mu       sync.Mutex
	manifest *index.Manifest
	before   value.Time // chunks that are free since before then may be overwritten
}

// maxWaste is how much larger the overwritten chunk may be: a put costs as much
// as the larger of the two.
func maxWaste(size int) int { return size/4 + 4<<10 }

// take returns the largest free chunk that suits the size, or a chunk with a
// new number and the content ID 0.
func (f *freeChunks) take(size int) index.Chunk {
	f.mu.Lock()
	defer f.mu.Unlock()
	best := -1
	for i, c := range f.manifest.Free {
		if c.Since < f.before && c.Size <= size+maxWaste(size) && (best < 0 || c.Size > f.manifest.Free[best].Size) {
			best = i
		}
	}
	if best < 0 {
		return index.Chunk{Number: rand.Uint64()} //nolint:gosec // a number, not a secret
	}
	taken := f.manifest.Free[best].Chunk
	f.manifest.Free = slices.Delete(f.manifest.Free, best, best+1)
	return taken
}

// release frees the chunks of segments.
func release(m *index.Manifest, now value.Time, segments ...*index.Segment) {
	for _, s := range segments {
		free(m, now, s.Chunks)
	}
}

func free(m *index.Manifest, now value.Time, chunks []index.Chunk) {
	for _, c := range chunks {
		m.Free = append(m.Free, index.FreeChunk{Chunk: c, Since: now})
	}
}

// takeSurplus takes the smallest free chunks off the manifest that are more
// than it remembers.
func takeSurplus(m *index.Manifest) []index.FreeChunk {
	if len(m.Free) <= maxFree {
		return nil
	}
	slices.SortFunc(m.Free, func(a, b index.FreeChunk) int { return cmp.Compare(b.Size, a.Size) })
	surplus := m.Free[maxFree:]
	m.Free = m.Free[:maxFree:maxFree]
	return surplus
}
