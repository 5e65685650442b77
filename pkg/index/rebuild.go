package index

import (
	"context"
	"log/slog"

	"github.com/commerce-integration/service/pkg/base/value"
)

// RebuildState is a rebuild under way: the manifest so far, and where to
// continue in the source. Covered is where the tail ended when the rebuild
// began: it is flushed from there, so that no change is lost between the
// source and the tail.
type RebuildState struct {
	Manifest
	Shard int
	After string
}

// EncodeRebuild returns the stored form of a rebuild's state.
func (k Key) EncodeRebuild(s *RebuildState) []byte { return k.encode(rebuildManifest, k.Layout(), s) }

// DecodeRebuild reads the stored form of a rebuild's state.
func (k Key) DecodeRebuild(stored *StoredManifest) (*RebuildState, error) {
	s := &RebuildState{}
	if err := k.decode(rebuildManifest, k.Layout(), stored.Body, s); err != nil {
		return nil, err
	}
	s.CoveredAt = stored.CoveredAt
	return s, s.check(k.List)
}

// RequestRebuild begins a rebuild of the list, unless one is under way, and
// requests a job for it. The fields come before the end of the tail: only later entries
// surely have the values of those that are known.
func (k Key) RequestRebuild(ctx context.Context, r Requester, now value.Time) error {
	fields, err := k.Fields(ctx, r)
	if err != nil {
		return err
	}
	end, err := r.TailEnd(ctx, k.Org, k.List.Name)
	if err != nil {
		return err
	}
	s := RebuildState{Manifest: Manifest{Covered: end.Sequence, RebuildID: newRebuildID(now), Fields: fields.Known(now)}}
	m := StoredManifest{Version: 1, Covered: end.Sequence, CoveredAt: end.At, At: now, Body: k.EncodeRebuild(&s)}
	if _, err := r.PutManifest(ctx, k.Org, k.List.Name, k.Layout().Rebuild(), m); err != nil {
		return err
	}
	return r.RequestJob(ctx, k.Org, k.List.Name, now)
}

// newRebuildID is the ID of a rebuild that begins now.
func newRebuildID(now value.Time) value.ID {
	random := value.NewRandomID()
	return value.TimedID(now, random[:])
}

// Rebuilds reads the states of rebuilds in all layouts, by name.
func (x Index) Rebuilds(ctx context.Context) (map[string]*StoredManifest, error) {
	return x.Reader.Manifests(ctx, x.Org, x.List.Name, rebuildManifest)
}

// Starter has the compactor do a list's job soon.
type Starter interface {
	Send(ctx context.Context, org value.ID, list string) error
}

// StartJob has a requested job done soon. The request is in storage already: a
// start that fails or gets lost only delays the job.
func (k Key) StartJob(ctx context.Context, starter Starter, logger *slog.Logger) {
	if err := starter.Send(ctx, k.Org, k.List.Name); err != nil {
		logger.WarnContext(ctx, "a job starts late", "organizationId", k.Org, "list", k.List.Name, "error", err)
	}
}
