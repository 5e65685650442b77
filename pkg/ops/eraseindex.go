package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
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
		rebuilding, err := e.Table.Manifest(ctx, key.Org, list.Name, index.RebuildManifest)
		if err != nil {
			return err
		}
		if end.Sequence == 0 && rebuilding == nil {
			live, err := e.Table.Manifest(ctx, key.Org, list.Name, index.LiveManifest)
			if err != nil {
				return err
			}
			if live == nil {
				continue // nothing was ever indexed
			}
		}
		if err := e.rewriteTail(ctx, key); err != nil {
			return fmt.Errorf("erase from the tail of %s: %w", list.Name, err)
		}
		// A rebuild under way has read the table before.
		for rebuilds := 0; rebuilds == 0 || rebuilding != nil && rebuilds < 2; rebuilds++ {
			if err := Rebuild(ctx, e.Table, e.Compactor, key, func(int, int) {}); err != nil {
				return fmt.Errorf("rebuild %s: %w", list.Name, err)
			}
		}
	}
	return e.removeChunks(ctx)
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
	named := map[uint64]uint64{}
	for _, which := range []string{index.LiveManifest, index.RebuildManifest} {
		stored, err := e.Table.Manifest(ctx, key.Org, key.List.Name, which)
		if err != nil {
			return nil, err
		}
		if stored == nil {
			continue
		}
		m := &index.Manifest{}
		if which == index.LiveManifest {
			m, err = key.DecodeManifest(stored.Body)
		} else if state, failed := key.DecodeRebuild(stored); failed == nil {
			m = &state.Manifest
		} else {
			err = failed
		}
		if err != nil {
			return nil, fmt.Errorf("read a manifest of %s: %w", key.List.Name, err)
		}
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
		n := 0
		count := func(d *columnar.Document) {
			if e.gone(list, d) {
				n++
			}
		}
		for _, p := range m.Partitions {
			segments, err := x.Open(ctx, p.Segments, list.Schema.ColumnGroups())
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
