package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// upkeep does what DynamoDB does by itself: it deletes expired items and the stream records that every reader is past.
type upkeep struct {
	sweeper tableserver.Sweeper
	past    func() string // the position that every reader is past, "" while unknown
	logger  *slog.Logger

	trimEvery, sweepEvery time.Duration

	trimmed string // the last position that the stream was trimmed to
}

// sweepShare is the share of time in which the table is swept: one in so many.
const sweepShare = 50

// run trims and sweeps side by side, since to sweep a large table takes minutes.
func (u *upkeep) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { u.every(ctx, u.trimEvery, u.trim) })
	both.Go(func() { u.every(ctx, u.sweepEvery, u.sweep) })
	both.Wait()
}

// every does something again and again, with a pause between the end of one time and the beginning of the next.
func (u *upkeep) every(ctx context.Context, interval time.Duration, do func(context.Context) error) {
	for pause.For(ctx, interval) == nil {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			u.logger.WarnContext(ctx, "upkeep of the table failed", "error", err)
		}
	}
}

func (u *upkeep) sweep(ctx context.Context) error {
	_, err := u.sweeper.Sweep(ctx, time.Now())
	return err
}

// trim leaves the stream of a server alone that this run has not started.
func (u *upkeep) trim(ctx context.Context) error {
	past := u.past()
	if u.sweeper.Server == nil || past == "" || past == u.trimmed {
		return nil
	}
	err := u.sweeper.Server.Trim(ctx, u.sweeper.Table, past)
	if err == nil {
		u.trimmed = past
	}
	return err
}
