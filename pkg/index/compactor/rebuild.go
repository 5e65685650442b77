package compactor

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

const (
	// rebuildDocuments and rebuildBytes bound the documents that one job of a
	// rebuild makes segments of.
	rebuildDocuments = 50_000
	rebuildBytes     = 32 << 20
	// settledAge is the age from which a change is surely in lists: the stream
	// delivers nothing that is older than its 24 hours.
	settledAge = 26 * time.Hour
)

// rebuild does one job of a rebuild and reports whether it was the last.
func (j *job) rebuild(ctx context.Context, stored *index.StoredManifest) (done bool, err error) {
	state, err := j.DecodeRebuild(stored.Body)
	if err == nil && state.Shard < j.List.Shards {
		err = j.readSource(ctx, state, stored.Version)
	} else if err == nil {
		done, err = j.replaceLive(ctx, state, stored.Version)
	}
	if !index.Damaged(err) {
		return done, err
	}
	j.logger.ErrorContext(ctx, "a rebuild starts over", "organizationId", j.Org, "list", j.List.Name, "error", err)
	if err := j.storage.DeleteManifest(ctx, j.Org, j.List.Name, index.RebuildManifest, stored.Version); err != nil {
		return false, err
	}
	return false, j.RequestRebuild(ctx, j.storage, j.now())
}

// readSource continues to read the list's source and makes segments of what it
// finds.
func (j *job) readSource(ctx context.Context, state *index.RebuildState, version uint64) error {
	known := j.liveView(ctx)
	documents, read, size := map[int32][]columnar.Document{}, 0, 0
	if state.Shard == 0 && state.After == "" {
		if err := j.addTombstones(ctx, state.Covered, documents); err != nil {
			return err
		}
	}
	for state.Shard < j.List.Shards && read < rebuildDocuments && size < rebuildBytes && (read == 0 || j.inTime()) {
		page, next, err := j.List.Read(ctx, j.Org, state.Shard, state.After)
		if err != nil {
			return err
		}
		j.setVisible(page, known)
		for _, d := range page {
			number := j.List.PartitionOf(&d)
			documents[number] = append(documents[number], d)
			size += d.Size()
		}
		read += len(page)
		if state.After = next; next == "" {
			state.Shard++
		}
	}
	for number, documents := range documents {
		state.Add(number, encode(j.List, documents))
	}
	if err := j.merge(ctx, &state.Manifest); err != nil {
		return err
	}
	return j.save(ctx, state, version)
}

// addTombstones adds the useful tombstones to their partitions: only the tail
// has them. The source makes up for entries that cannot be read.
func (j *job) addTombstones(ctx context.Context, upTo uint64, documents map[int32][]columnar.Document) error {
	useless := j.now().Add(-tombstoneUse)
	return j.storage.TailBack(ctx, j.Org, j.List.Name, upTo, func(stored index.StoredEntry) (more bool, err error) {
		if stored.At < useless {
			return false, nil
		}
		e, err := j.DecodeEntry(stored)
		if err != nil {
			return true, nil //nolint:nilerr // as said above
		}
		for _, c := range e.Changes {
			if c.Deleted {
				documents[c.Partition] = append(documents[c.Partition], c.Document)
			}
		}
		return true, nil
	})
}

// save puts the state of the rebuild. A job that another one has overtaken
// leaves the rebuild to that one.
func (j *job) save(ctx context.Context, state *index.RebuildState, version uint64) error {
	if err := j.store(ctx, &state.Manifest); err != nil {
		return err
	}
	_, err := j.storage.PutManifest(ctx, j.Org, j.List.Name, index.RebuildManifest, index.StoredManifest{
		Version: version + 1, Covered: state.Covered, Body: j.EncodeRebuild(state),
	})
	return err
}

// replaceLive flushes the tail into the new manifest until it reaches as far as
// the live one, and then replaces that one. Views learn of it by an entry of
// the tail.
func (j *job) replaceLive(ctx context.Context, state *index.RebuildState, version uint64) (done bool, err error) {
	live, err := j.storage.Manifest(ctx, j.Org, j.List.Name, index.LiveManifest)
	if err != nil {
		return false, err
	}
	if live == nil {
		live = &index.StoredManifest{}
	}
	old, err := j.DecodeManifest(live.Body)
	if err != nil {
		old = &index.Manifest{} // its chunks are lost and stay stored for good
	}
	if old.RebuildID != state.RebuildID { // else a job has replaced it and died
		if err := j.flush(ctx, &state.Manifest); err != nil {
			return false, err
		}
		if j.more || state.Covered < live.Covered {
			return false, j.save(ctx, state, version)
		}
		state.Free = append(state.Free, old.Free...)
		for _, p := range old.Partitions {
			release(&state.Manifest, j.now(), p.Segments...)
		}
		if done, err := j.commit(ctx, &state.Manifest, live.Version); err != nil || !done {
			return false, err
		}
		live.Version++
	}
	if err := j.announce(ctx, live.Version); err != nil {
		return false, err
	}
	return true, j.storage.DeleteManifest(ctx, j.Org, j.List.Name, index.RebuildManifest, version)
}

// announce tells the views that the list was rebuilt, and requests the job that
// flushes the announcement.
func (j *job) announce(ctx context.Context, version uint64) error {
	if err := j.storage.RequestJob(ctx, j.Org, j.List.Name, j.now()); err != nil {
		return err
	}
	_, err := j.storage.AppendTail(ctx, j.Org, j.List.Name, func(next index.Position) ([]byte, error) {
		return j.SealEntry(next.Sequence, index.RebuiltEntry(version)), nil
	})
	return err
}

// liveView is a view of the core of the index before the rebuild, to find since
// when documents have been visible; an empty one when it cannot be read.
func (j *job) liveView(ctx context.Context) *columnar.View {
	view := columnar.NewView(j.List.Schema)
	m, _, err := j.Load(ctx)
	for i := 0; err == nil && i < len(m.Partitions); i++ {
		var opened []*segment.Segment
		opened, err = j.Open(ctx, m.Partitions[i].Segments, index.Core)
		segment.Load(view, opened...)
	}
	if err == nil {
		err = j.Tail(ctx, m.Covered, true, func(_ uint64, e index.TailEntry) error {
			view.Apply(e.Documents())
			return nil
		})
	}
	if err != nil {
		j.logger.WarnContext(ctx, "an index cannot be read", "organizationId", j.Org, "list", j.List.Name, "error", err)
		return columnar.NewView(j.List.Schema)
	}
	return view
}

// setVisible sets since when documents have been visible. A revision that was
// in the index before the rebuild keeps its time. Another one that is old
// enough to have been in lists before gets the time of the change, and the
// others get the present.
func (j *job) setVisible(documents []columnar.Document, known *columnar.View) {
	type documentKey struct {
		id  [16]byte
		sub uint8
	}
	ids := make([][16]byte, len(documents))
	for i := range documents {
		ids[i] = documents[i].ID
	}
	hits := map[documentKey]columnar.Hit{}
	for _, hit := range known.Query(columnar.Query{Filter: columnar.IDs(ids...), OrderBy: columnar.ByID, Limit: 2 * len(ids)}).Hits {
		hits[documentKey{hit.ID, hit.Sub}] = hit
	}
	now := int64(j.now())
	for i := range documents {
		d := &documents[i]
		hit, ok := hits[documentKey{d.ID, d.Sub}]
		switch {
		case ok && hit.Revision == d.Revision:
			d.Visible = hit.Visible
		case d.Revision < now-settledAge.Milliseconds():
			d.Visible = d.Revision
		default:
			d.Visible = now
		}
	}
}
