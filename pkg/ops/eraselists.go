package ops

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
)

// chunkGrace is how long a chunk that no manifest names is left alone: a job may
// have written it and be about to put its manifest, and a reader may have read
// the manifest before. A job belongs to its holder for a minute.
const chunkGrace = 75 * time.Second

// rebuildLists builds the lists anew from the table, without what was erased, and
// removes the parts that they had before. The tails forget within 30 days.
func (e *Erasure) rebuildLists(ctx context.Context) error {
	passes, err := e.rebuildPasses(ctx)
	if err != nil {
		return err
	}
	for range passes {
		if err := Reindex(ctx, e.Table, e.Compactor, e.Organization, e.Lists.All()); err != nil {
			return err
		}
	}
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

// rebuildPasses is how often the lists are built: twice if a rebuild is under way,
// which goes on with what it has read before the erasure.
func (e *Erasure) rebuildPasses(ctx context.Context) (int, error) {
	for _, list := range e.Lists.All() {
		key := index.Key{Org: e.Organization, List: list}
		begun, err := e.Table.Manifest(ctx, e.Organization, list.Name, key.Layout().Rebuild())
		if err != nil {
			return 0, err
		}
		if begun != nil {
			return 2, nil
		}
	}
	return 1, nil
}

type listChunk struct {
	list   string
	number uint64
}

// unnamedChunks are the contents of chunks that are part of no list.
func (e *Erasure) unnamedChunks(ctx context.Context) (map[listChunk]uint64, error) {
	chunks := map[listChunk]uint64{}
	err := e.Table.EachItem(ctx, e.Organization, func(i *dynamo.OwnedItem) error {
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
