package ops

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	// MaxPositionAge bounds the age of an interrupted run over the table that can
	// be resumed. What an older run did is done again.
	MaxPositionAge = 24 * time.Hour
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

// Reindex rebuilds the lists of an organization, except those that the
// position has already. It calls done, which may run several times at once, after
// each list.
func Reindex(ctx context.Context, storage index.Reader, c *compactor.Compactor, org value.ID, lists []*index.List,
	position *ReindexPosition, done func(),
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRebuilds)
	for _, list := range lists {
		if position.done(org, list.Name) {
			done()
			continue
		}
		group.Go(func() error {
			if err := Rebuild(ctx, storage, c, index.Key{Org: org, List: list}, func(int, int) {}); err != nil {
				return fmt.Errorf("reindex %s of organization %s: %w", list.Name, org, err)
			}
			done()
			return position.Save(org, list.Name)
		})
	}
	return group.Wait()
}

// ReindexPosition is how far a run has come, by organizations in the order of
// their IDs. It is safe for concurrent use.
type ReindexPosition struct {
	*Position[reindexState]

	mu sync.Mutex
}

type reindexState struct {
	OrganizationID value.ID `json:"organizationId"` // the last begun; those before it are done
	Lists          []string `json:"lists"`          // its lists that are done
}

// OpenReindexPosition returns the position of an earlier, interrupted run of
// the same command, or that of a new run.
func OpenReindexPosition(dataDir, fingerprint string, now time.Time) (*ReindexPosition, error) {
	p, err := OpenPosition(PositionFile(dataDir, "reindex", fingerprint), fingerprint, now, now.Add(-MaxPositionAge), reindexState{})
	return &ReindexPosition{Position: p}, err
}

// Resumed returns the organization at which an earlier run was interrupted.
func (p *ReindexPosition) Resumed() (org value.ID, ok bool) {
	return p.State.OrganizationID, !p.State.OrganizationID.IsZero()
}

func (p *ReindexPosition) done(org value.ID, list string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := org.Compare(p.State.OrganizationID)
	return order < 0 || order == 0 && slices.Contains(p.State.Lists, list)
}

// Save records that a list is done.
func (p *ReindexPosition) Save(org value.ID, list string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if org != p.State.OrganizationID {
		p.State = reindexState{OrganizationID: org}
	}
	p.State.Lists = append(p.State.Lists, list)
	return p.Position.Save()
}
