package compactor

import (
	"context"
	"errors"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/index"
)

const (
	// otherKept is how long the manifest of another layout is kept after it was
	// last put. Until then the release that reads it can be brought back.
	otherKept = 14 * 24 * time.Hour
	// otherPause is how long a job waits for one of another release that goes on
	// with a rebuild, and otherWait how long it expects one.
	otherPause = time.Minute
	otherWait  = time.Hour
)

// takeOver makes the manifest of the format before, which stays, the first of the
// job's own layout; the caller puts it. The release that maintains the other one
// must not overwrite chunks from then on: it is told before this one's manifest
// exists. takeOver reports false when the other one has changed meanwhile, or
// lacks columns: those are in the table alone, and the list is rebuilt beside it.
func (j *job) takeOver(ctx context.Context, m *index.Manifest) (done bool, err error) {
	if m.Layout.Columns < j.Layout().Columns {
		j.logger.InfoContext(ctx, "a list gets new columns", "organizationId", j.Org, "list", j.List.Name, "columns", j.Layout().Columns)
		return false, j.RequestRebuild(ctx, j.storage, j.now())
	}
	which := m.Layout.Live()
	if done, err = j.keep(ctx, which, j.manifests[which], true); err != nil || !done {
		return false, err
	}
	m.Layout, m.Shared, m.Free, j.changed = j.Layout(), true, nil, true
	return true, nil
}

// keep puts another layout's manifest again, so that it is kept from now on.
func (j *job) keep(ctx context.Context, which string, stored *index.StoredManifest, shared bool) (done bool, err error) {
	next := *stored
	next.Version, next.At, next.Shared = stored.Version+1, j.now(), shared
	return j.storage.PutManifest(ctx, j.Org, j.List.Name, which, next)
}

// dropOthers deletes the manifests of other layouts that nobody has put for
// otherKept, and frees what they alone name, as far as this release can read
// them. Once there is no other one left, chunks may be overwritten again. The
// list's own manifest covers the whole tail by then.
func (j *job) dropOthers(ctx context.Context, m *index.Manifest) error {
	if j.version == 0 || j.more {
		return nil
	}
	left := 0
	for which, stored := range j.manifests {
		if which == j.Layout().Live() {
			continue
		}
		if stored.At > j.now().Add(-otherKept) {
			left++
			continue
		}
		other := j.Readable(which, stored)
		err := j.storage.DeleteManifest(ctx, j.Org, j.List.Name, which, stored.Version)
		if errors.Is(err, fault.ErrChanged) {
			left++
			continue
		}
		if err != nil {
			return err
		}
		j.changed = true
		if other != nil {
			m.Shared = m.Shared || stored.Shared
			j.inherit(m, other)
		}
	}
	if m.Shared && left == 0 {
		m.Shared, j.changed = false, true
	}
	return nil
}

// inherit frees the chunks that only the other manifest names.
func (j *job) inherit(m, other *index.Manifest) {
	named := map[uint64]bool{}
	for _, c := range m.Free {
		named[c.Number] = true
	}
	for _, p := range m.Partitions {
		for _, s := range p.Segments {
			for _, c := range s.Chunks {
				named[c.Number] = true
			}
		}
	}
	all := &index.Manifest{Free: other.Free}
	for _, p := range other.Partitions {
		release(all, j.now(), p.Segments...)
	}
	for _, c := range all.Free {
		if !named[c.Number] {
			m.Free = append(m.Free, index.FreeChunk{Chunk: c.Chunk, Since: j.now()})
		}
	}
}

// keepOthers keeps the manifests of other layouts from now on: the list's first
// manifest of its own layout is about to be put.
func (j *job) keepOthers(ctx context.Context) error {
	others, err := j.Manifests(ctx)
	if err != nil {
		return err
	}
	for which, stored := range others {
		if _, err := j.keep(ctx, which, stored, stored.Shared); err != nil {
			return err
		}
	}
	return nil
}
