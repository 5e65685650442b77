package compactor

import (
	"context"
	"errors"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/index"
)

// staleAfter is how long the manifest of another layout is kept after it was last
// put, and after the list was built in its own layout. Until then the release that
// reads it can be brought back.
const staleAfter = 14 * 24 * time.Hour

// deleteStaleLayouts deletes the manifests of other layouts that are no longer needed,
// and frees their chunks. A manifest that cannot be read leaves its chunks stored for
// good.
func (j *job) deleteStaleLayouts(ctx context.Context, m *index.Manifest) error {
	before := j.now().Add(-staleAfter)
	if j.version == 0 || j.more || m.RebuildID.Time() > before {
		return nil
	}
	for which, stored := range j.manifests {
		if which == j.Layout().Live() || stored.At > before {
			continue
		}
		err := j.storage.DeleteManifest(ctx, j.Org, j.List.Name, which, stored.Version)
		if errors.Is(err, fault.ErrChanged) {
			continue
		}
		if err != nil {
			return err
		}
		free(m, j.now(), j.Chunks(which, stored))
		j.changed = true
	}
	return nil
}
