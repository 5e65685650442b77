package compactor

import (
	"context"
	"errors"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
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
	state, err := j.DecodeRebuild(stored)
	if err == nil && state.Shard < j.List.Shards {
		err = j.readSource(ctx, state, stored.Version)
	} else if err == nil {
		done, err = j.replaceLive(ctx, state, stored.Version)
	}
	if !index.Damaged(err) {
		return done, err
	}
	j.logger.ErrorContext(ctx, "a rebuild starts over", "organizationId", j.Org, "list", j.List.Name, "error", err)
	if err := j.storage.DeleteManifest(ctx, j.Org, j.List.Name, j.Layout().Rebuild(), stored.Version); err != nil {
		return false, err
	}
	return false, j.RequestRebuild(ctx, j.storage, j.now())
}

// readSource continues to read the list's source and makes segments of what it
// finds.
func (j *job) readSource(ctx context.Context, state *index.RebuildState, version uint64) error {
	documents, pages, read, size := map[int32][]columnar.Document{}, map[int32][]columnar.Document{}, 0, 0
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
		for _, d := range page {
			number := j.List.PartitionOf(&d)
			pages[number] = append(pages[number], d)
			size += d.Size()
		}
		read += len(page)
		if state.After = next; next == "" {
			state.Shard++
		}
	}
	j.setAllVisible(ctx, pages, state.CoveredAt)
	for number, page := range pages {
		documents[number] = append(documents[number], page...)
	}
	for number, documents := range documents {
		state.Add(number, documents, func(_ *index.Partition, documents []columnar.Document) *index.Segment {
			return encode(j.List, documents)
		})
	}
	for _, step := range []func(context.Context, *index.Manifest) error{j.divide, j.merge} {
		if err := step(ctx, &state.Manifest); err != nil {
			return err
		}
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
	_, err := j.storage.PutManifest(ctx, j.Org, j.List.Name, j.Layout().Rebuild(), index.StoredManifest{
		Version: version + 1, Covered: state.Covered, CoveredAt: state.CoveredAt, At: j.now(), Body: j.EncodeRebuild(state),
	})
	return err
}

// replaceLive flushes the tail into the new manifest until it reaches as far as
// the live one, and then replaces that one. Views learn of it by an entry of
// the tail.
func (j *job) replaceLive(ctx context.Context, state *index.RebuildState, version uint64) (done bool, err error) {
	live, err := j.storage.Manifest(ctx, j.Org, j.List.Name, j.Layout().Live())
	if err == nil && live == nil {
		live = &index.StoredManifest{}
	}
	if err != nil {
		return false, err
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
	return true, j.storage.DeleteManifest(ctx, j.Org, j.List.Name, j.Layout().Rebuild(), version)
}

// announce lets the views know that the list was rebuilt, and requests the job that
// flushes the announcement.
func (j *job) announce(ctx context.Context, version uint64) error {
	if err := j.storage.RequestJob(ctx, j.Org, j.List.Name, j.now()); err != nil {
		return err
	}
	_, err := j.storage.AppendTail(ctx, j.Org, j.List.Name, func(next index.Position) ([]byte, error) {
		return j.SealEntry(next.Sequence, j.RebuiltEntry(version)), nil
	})
	return err
}

// liveIndex is what a list showed before its rebuild, in one partition.
type liveIndex struct {
	view *columnar.View // of the core; nil when it cannot be read
	at   value.Time     // of the last entry of the tail; 0 when there never was one
}

// setAllVisible sets since when documents have been visible, by partition, from
// the live index.
func (j *job) setAllVisible(ctx context.Context, pages map[int32][]columnar.Document, coveredAt value.Time) {
	err := j.setVisibleAsLive(ctx, pages, coveredAt)
	if err == nil {
		return
	}
	j.logger.WarnContext(ctx, "an index cannot be read", "organizationId", j.Org, "list", j.List.Name, "error", err)
	for _, page := range pages {
		j.setVisible(page, liveIndex{at: coveredAt})
	}
}

// errLargePartition says that a partition does not fit into a job's memory.
var errLargePartition = errors.New("a partition is too large for a job")

// setVisibleAsLive reads one partition of the live index after the other.
func (j *job) setVisibleAsLive(ctx context.Context, pages map[int32][]columnar.Document, coveredAt value.Time) error {
	m, _, err := j.Load(ctx)
	if err != nil {
		return err
	}
	x := j.As(m.Layout)
	at, changes := max(m.CoveredAt, coveredAt), map[int32][]columnar.Document{}
	err = x.Tail(ctx, m.Covered, true, func(_ uint64, e index.TailEntry) error {
		for _, c := range e.Changes {
			if pages[c.Partition] != nil {
				changes[c.Partition] = append(changes[c.Partition], c.Document)
			}
		}
		at = max(at, e.At)
		return nil
	})
	if err != nil {
		return err
	}
	for number, page := range pages {
		for p, documents := range m.Divided(number, page) {
			if p.Memory(x.List.Schema, false) > maxJobMemory {
				return errLargePartition
			}
			view, err := coreView(ctx, x, p)
			if err != nil {
				return err
			}
			view.Apply(changes[number])
			j.setVisible(documents, liveIndex{view, at})
		}
	}
	return nil
}

// setVisible sets since when documents have been visible. A revision that the
// live index has keeps its time. Another one is new to every client: it gets
// the present, and a later time once its entry is in the tail. In a list that
// never had an entry that is the time of the change, since no client has a time
// to go on from. When the live index cannot be read, it is a time at which the
// revision had surely been in lists.
func (j *job) setVisible(documents []columnar.Document, live liveIndex) {
	type documentKey struct {
		id  [16]byte
		sub uint8
	}
	hits := map[documentKey]columnar.Hit{}
	if live.view != nil {
		ids := make([][16]byte, len(documents))
		for i := range documents {
			ids[i] = documents[i].ID
		}
		for _, hit := range live.view.Query(columnar.Query{Filter: columnar.IDs(ids...), OrderBy: columnar.ByID, Limit: 2 * len(ids)}).Hits {
			hits[documentKey{hit.ID, hit.Sub}] = hit
		}
	}
	now := int64(max(j.now(), live.at+1))
	for i := range documents {
		d := &documents[i]
		hit, ok := hits[documentKey{d.ID, d.Sub}]
		switch {
		case ok && hit.Revision == d.Revision:
			d.Visible = hit.Visible
		case live.at == 0:
			d.Visible = d.Revision
		case live.view != nil:
			d.Visible = now
		default:
			d.Visible = min(d.Revision+settledAge.Milliseconds(), now)
		}
	}
}
