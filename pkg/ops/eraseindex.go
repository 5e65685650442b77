package ops

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
)

// chunkGrace is how long a chunk that no manifest names is left alone: a job may
// have written it and be about to put its manifest, and a reader may have read
// the manifest before. A job belongs to its holder for a minute.
const chunkGrace = 75 * time.Second

// eraseIndex builds the lists anew from the table, without what was erased from
// it, and removes what they had before. The tails keep for weeks what was
// changed. The first rebuild covers their entries, so that these can go; the
// second no longer finds deletions in them.
func (e *Erasure) eraseIndex(ctx context.Context) error {
	for _, list := range e.Lists.All() {
		key := index.Key{Org: e.Organization, List: list}
		rebuild := func(ctx context.Context, key index.Key) error {
			return Rebuild(ctx, e.Table, e.Compactor, key, func(int, int) {})
		}
		for _, step := range []func(context.Context, index.Key) error{rebuild, e.removeTail, rebuild, e.removeOtherManifests} {
			if err := step(ctx, key); err != nil {
				return fmt.Errorf("erase from the index of %s: %w", list.Name, err)
			}
		}
	}
	return e.removeChunks(ctx)
}

// removeTail removes the entries that the list covers. A view that is behind
// them notices the gap, and reads the list anew.
func (e *Erasure) removeTail(ctx context.Context, key index.Key) error {
	m, _, err := index.Index{Key: key, Reader: e.Table}.Load(ctx)
	if err != nil {
		return err
	}
	var covered []uint64
	err = e.Table.TailBack(ctx, key.Org, key.List.Name, m.Covered, func(entry index.StoredEntry) (bool, error) {
		covered = append(covered, entry.Sequence)
		return true, nil
	})
	if err != nil {
		return err
	}
	return e.eraser.RemoveTail(ctx, key.Org, key.List.Name, covered)
}

// removeOtherManifests removes the manifests of other layouts, whose segments
// have the erased documents. Another release that still runs builds the list again.
func (e *Erasure) removeOtherManifests(ctx context.Context, key index.Key) error {
	x := index.Index{Key: key, Reader: e.Table}
	others, err := x.Manifests(ctx)
	if err != nil {
		return err
	}
	rebuilds, err := x.Rebuilds(ctx)
	if err != nil {
		return err
	}
	delete(others, key.Layout().Live())
	maps.Copy(others, rebuilds)
	for which, stored := range others {
		if err := e.Table.DeleteManifest(ctx, key.Org, key.List.Name, which, stored.Version); err != nil {
			return err
		}
	}
	return nil
}

type listChunk struct {
	list   string
	number uint64
}

// unnamedChunks are the contents of chunks that are part of no list.
func (e *Erasure) unnamedChunks(ctx context.Context) (map[listChunk]uint64, error) {
	chunks := map[listChunk]uint64{}
	err := e.eraser.EachItem(ctx, e.Organization, func(i *dynamo.OwnedItem) error {
		if list, c, ok := i.Chunk(); ok {
			chunks[listChunk{list, c.Number}] = c.ContentID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, list := range e.Lists.All() {
		m, _, err := index.Index{Key: index.Key{Org: e.Organization, List: list}, Reader: e.Table}.Load(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range m.Partitions {
			for _, s := range p.Segments {
				for _, c := range s.Chunks {
					if at := (listChunk{list.Name, c.Number}); chunks[at] == c.ContentID {
						delete(chunks, at)
					}
				}
			}
		}
	}
	return chunks, nil
}

// removeChunks deletes the chunks that no manifest named before the grace, nor
// after it.
func (e *Erasure) removeChunks(ctx context.Context) error {
	before, err := e.unnamedChunks(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	if err := e.Pause(ctx, chunkGrace); err != nil {
		return err
	}
	now, err := e.unnamedChunks(ctx)
	if err != nil {
		return err
	}
	for at, content := range now {
		if before[at] != content {
			continue
		}
		if err := e.Table.DeleteChunk(ctx, e.Organization, at.list, at.number, content); err != nil {
			return err
		}
	}
	return nil
}

// leftInIndex says which lists have documents that the table lacks, as those of
// the erasure are, and how many chunks no manifest names.
func (e *Erasure) leftInIndex(ctx context.Context) (lines []string, err error) {
	for _, list := range e.Lists.All() {
		differences, err := Verify(ctx, e.Table, e.Organization, list, time.Now())
		if err != nil {
			return nil, err
		}
		n := 0
		for _, d := range differences {
			if d.ID != (value.ID{}) && d.Table == 0 {
				n++
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("index of %s: %d", list.Name, n))
		}
	}
	chunks, err := e.unnamedChunks(ctx)
	if len(chunks) > 0 {
		lines = append(lines, fmt.Sprintf("chunks of the index that nothing names: %d", len(chunks)))
	}
	return lines, err
}
