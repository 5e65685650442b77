package index

import (
	"context"
	"fmt"
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
func (k Key) EncodeRebuild(s *RebuildState) []byte {
	c := codec{}
	c.count(&s.Shard)
	c.text(&s.After)
	c.fixed(k.EncodeManifest(&s.Manifest))
	return seal(nil, c.Data)
}

// DecodeRebuild reads the stored form of a rebuild's state.
func (k Key) DecodeRebuild(stored *StoredManifest) (*RebuildState, error) {
	body, ok := unseal(nil, stored.Body)
	c, s := reading(body), &RebuildState{}
	c.count(&s.Shard)
	if c.text(&s.After); !ok || c.Bad {
		return nil, fmt.Errorf("state of a rebuild: %w", errManifest)
	}
	m, err := k.DecodeManifest(c.Data)
	if err != nil {
		return nil, err
	}
	s.Manifest = *m
	s.CoveredAt = stored.CoveredAt
	return s, nil
}

// RequestRebuild begins a rebuild of the list, unless one is under way, and
// requests a job for it.
func (k Key) RequestRebuild(ctx context.Context, r Requester, now value.Time) error {
	end, err := r.TailEnd(ctx, k.Org, k.List.Name)
	if err != nil {
		return err
	}
	s := RebuildState{Manifest: Manifest{Covered: end.Sequence, RebuildID: value.NewID()}}
	m := StoredManifest{Version: 1, Covered: end.Sequence, CoveredAt: end.At, At: now, Body: k.EncodeRebuild(&s)}
	if _, err := r.PutManifest(ctx, k.Org, k.List.Name, k.Layout().Rebuild(), m); err != nil {
		return err
	}
	return r.RequestJob(ctx, k.Org, k.List.Name, now)
}

// OtherRebuild reports whether a rebuild of the list in another layout has gone
// on since the time.
func (k Key) OtherRebuild(rebuilds map[string]*StoredManifest, since value.Time) bool {
	for which, stored := range rebuilds {
		if which != k.Layout().Rebuild() && stored.At > since {
			return true
		}
	}
	return false
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
