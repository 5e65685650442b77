package ops

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/lists/compactor"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/pause"
)

// rebuildPause lets others have the list's jobs between two of a rebuild.
const rebuildPause = 10 * time.Millisecond

// Rebuild makes an index again from the table and returns once it is live.
// Meanwhile lists are answered from the index there is. An interrupted rebuild
// continues where it was. Progress is counted in shards of the table.
func Rebuild(ctx context.Context, storage index.Reader, c *compactor.Compactor, key index.Key, progress func(done, of int)) error {
	if err := c.RequestRebuild(ctx, key); err != nil {
		return err
	}
	for {
		if _, err := c.Run(ctx, key.Org, key.List.Name); err != nil {
			return err
		}
		stored, err := storage.Manifest(ctx, key.Org, key.List.Name, index.RebuildManifest)
		if err != nil || stored == nil {
			return err
		}
		if state, err := key.DecodeRebuild(stored.Body); err == nil {
			progress(state.Shard, key.List.Shards)
		}
		if err := pause.For(ctx, rebuildPause); err != nil {
			return err
		}
	}
}
