package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// chunkGrace is how long a chunk that no manifest names is left alone: a job may
// have written it and be about to put its manifest, and a reader may have read
// the manifest before. A job belongs to its holder for a minute.
const chunkGrace = 75 * time.Second

// emptyEntry is an entry of a tail without documents.
var emptyEntry = []byte{0, 0}

// eraseIndex takes the erased documents out of the index: out of the tails by
// writing their entries again, out of the segments by rebuilding the lists from
// the table, and at last the chunks that no manifest names any more.
func (e *Erasure) eraseIndex(ctx context.Context) error {
	for _, list := range e.Lists.All() {
		key := index.Key{Org: e.Organization, List: list}
		end, err := e.Table.TailEnd(ctx, key.Org, list.Name)
		if err != nil {
			return err
		}
		live, rebuilds, err := e.manifests(ctx, key)
		if err != nil {
			return err
		}
		if end.Sequence == 0 && len(live)+len(rebuilds) == 0 {
			continue // nothing was ever indexed
		}
		if err := e.rewriteTail(ctx, key); err != nil {
			return fmt.Errorf("erase from the tail of %s: %w", list.Name, err)
		}
		// A rebuild under way has read the table before.
		underWay := rebuilds[key.Layout().Rebuild()] != nil
		for done := 0; done == 0 || underWay && done < 2; done++ {
			if err := Rebuild(ctx, e.Table, e.Compactor, key, func(int, int) {}); err != nil {
				return fmt.Errorf("rebuild %s: %w", list.Name, err)
			}
		}
		if err := e.removeOtherManifests(ctx, key); err != nil {
			return fmt.Errorf("remove other manifests of %s: %w", list.Name, err)
		}
	}
	return e.removeChunks(ctx)
}

// manifests reads the live manifests and the rebuilds of a list in all layouts.
func (e *Erasure) manifests(ctx context.Context, key index.Key) (live, rebuilds map[string]*index.StoredManifest, err error) {
	x := index.Index{Key: key, Reader: e.Table}
	if live, err = x.Manifests(ctx); err == nil {
		rebuilds, err = x.Rebuilds(ctx)
	}
	return live, rebuilds, err
}

// removeOtherManifests removes the manifests of other layouts, whose segments
// have the erased documents. An earlier release that still runs has the list
// busy then, or begins it again from its tail.
func (e *Erasure) removeOtherManifests(ctx context.Context, key index.Key) error {
	live, rebuilds, err := e.manifests(ctx, key)
	if err != nil {
		return err
	}
	delete(live, key.Layout().Live())
	delete(rebuilds, key.Layout().Rebuild())
	for _, others := range []map[string]*index.StoredManifest{live, rebuilds} {
		for which, stored := range others {
			if err := e.Table.DeleteManifest(ctx, key.Org, key.List.Name, which, stored.Version); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone reports whether a document of a list is one of what is erased.
func (e *Erasure) gone(list *index.List, d *columnar.Document) bool {
	id := value.ID(d.ID)
	switch list {
	case e.Lists.Deliveries:
		return e.known.Deliveries[id]
	case e.Lists.Deletions:
		deletion, ok := commerce.DeletionOf(columnar.Hit{ID: d.ID, Sub: d.Sub})
		return ok && e.known.Records[deletion.Kind][id]
	}
	for _, kind := range personal {
		if e.Lists.Records[kind] == list {
			return e.known.Records[kind][id]
		}
	}
	return false
}

// rewriteTail takes the erased documents out of the entries of a tail. The
// entries stay, because views follow their numbers. One that cannot be read is
// emptied: the rebuild reads the table instead.
func (e *Erasure) rewriteTail(ctx context.Context, key index.Key) error {
	return e.Table.TailAfter(ctx, key.Org, key.List.Name, 0, true, func(stored index.StoredEntry) error {
		entry, err := key.DecodeEntry(stored)
		var kept []index.Change
		for _, c := range entry.Changes {
			if !e.gone(key.List, &c.Document) {
				kept = append(kept, c)
			}
		}
		if err == nil && len(kept) == len(entry.Changes) {
			return nil
		}
		body := emptyEntry
		if packed := index.PackEntries(kept); len(packed) > 0 {
			body = packed[0] // a part of an entry fits into one
		}
		return e.eraser.RewriteTail(ctx, key.Org, key.List.Name, stored.Sequence, key.SealEntry(stored.Sequence, body))
	})
}

// namedChunks are the chunks that the manifests of a list name as parts of
// segments.
func (e *Erasure) namedChunks(ctx context.Context, key index.Key) (map[uint64]uint64, error) {
	live, rebuilds, err := e.manifests(ctx, key)
	if err != nil {
		return nil, err
	}
	var manifests []*index.Manifest
	for which, stored := range live {
		m := index.Index{Key: key}.Readable(which, stored)
		if m == nil {
			return nil, fmt.Errorf("the manifest %s of %s cannot be read", which, key.List.Name)
		}
		manifests = append(manifests, m)
	}
	for which, stored := range rebuilds {
		if which != key.Layout().Rebuild() {
			return nil, fmt.Errorf("another release rebuilds %s: %s", key.List.Name, which)
		}
		state, err := key.DecodeRebuild(stored)
		if err != nil {
			return nil, fmt.Errorf("read a manifest of %s: %w", key.List.Name, err)
		}
		manifests = append(manifests, &state.Manifest)
	}
	named := map[uint64]uint64{}
	for _, m := range manifests {
		for _, p := range m.Partitions {
			for _, s := range p.Segments {
				for _, c := range s.Chunks {
					named[c.Number] = c.ContentID
				}
			}
		}
	}
	return named, nil
}

type listChunk struct {
	list   string
	number uint64
}

// unnamedChunks are the contents of chunks that no manifest names.
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
		named, err := e.namedChunks(ctx, index.Key{Org: e.Organization, List: list})
		if err != nil {
			return nil, err
		}
		for number, content := range named {
			if at := (listChunk{list.Name, number}); chunks[at] == content {
				delete(chunks, at)
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

// leftInIndex says which lists still have an erased document, and how many
// chunks no manifest names.
func (e *Erasure) leftInIndex(ctx context.Context) (lines []string, err error) {
	for _, list := range e.Lists.All() {
		x := index.Index{Key: index.Key{Org: e.Organization, List: list}, Reader: e.Table}
		m, _, err := x.Load(ctx)
		if err != nil {
			return nil, err
		}
		x = x.As(m.Layout)
		n := 0
		count := func(d *columnar.Document) {
			if e.gone(list, d) {
				n++
			}
		}
		for _, p := range m.Partitions {
			segments, err := x.Open(ctx, p.Segments, x.List.Schema.ColumnGroups())
			if err != nil {
				return nil, err
			}
			for _, s := range segments {
				for d := range s.Documents() {
					count(&d)
				}
			}
		}
		err = e.Table.TailAfter(ctx, x.Org, list.Name, 0, true, func(stored index.StoredEntry) error {
			entry, err := x.DecodeEntry(stored)
			for _, c := range entry.Changes {
				count(&c.Document)
			}
			return err
		})
		if err != nil {
			return nil, err
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
