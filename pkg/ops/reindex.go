package ops

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
)

const (
	// rebuildPause gives others a chance at the list's lease between two jobs.
	rebuildPause = 10 * time.Millisecond
	// concurrentRebuilds bounds the lists of an organization rebuilt at a time.
	concurrentRebuilds = 4
)

// Rebuild builds an index again from the table and returns once it is live.
// Until then lists are answered from the old index. An interrupt takes effect
// after the current job, within seconds, because an abandoned job would hold
// the list's lease for a minute; the next Rebuild resumes there. Progress
// counts shards of the table.
func Rebuild(ctx context.Context, storage index.Reader, c *compactor.Compactor, key index.Key, progress func(done, of int)) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	whole := context.WithoutCancel(ctx)
	if err := c.RequestRebuild(whole, key); err != nil {
		return err
	}
	for {
		if _, err := c.Run(whole, key.Org, key.List.Name); err != nil {
			return err
		}
		stored, err := storage.Manifest(whole, key.Org, key.List.Name, key.Layout().Rebuild())
		if err != nil || stored == nil {
			return err
		}
		if state, err := key.DecodeRebuild(stored); err == nil {
			progress(state.Shard, key.List.Shards)
		}
		if err := pause.For(ctx, rebuildPause); err != nil {
			return err
		}
	}
}

// Reindex rebuilds lists of an organization. A rebuild that an interrupted run has
// begun goes on.
func Reindex(ctx context.Context, storage index.Reader, c *compactor.Compactor, org value.ID, lists []*index.List) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRebuilds)
	for _, list := range lists {
		group.Go(func() error {
			if err := Rebuild(ctx, storage, c, index.Key{Org: org, List: list}, func(int, int) {}); err != nil {
				return fmt.Errorf("reindex %s of organization %s: %w", list.Name, org, err)
			}
			return nil
		})
	}
	return group.Wait()
}
