package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
)

const trimInterval, sweepInterval = time.Second, time.Minute

// upkeep does what DynamoDB does by itself: it deletes expired items and the stream records that every reader is past.
type upkeep struct {
	past   func() string // the position that every reader is past, "" while unknown
	trim   func(ctx context.Context, past string) error
	sweep  func(ctx context.Context) error
	logger *slog.Logger

	trimmed string // the last position that the stream was trimmed to
}

// upkeep is that of the run's own table server.
func (r *run) upkeep(past func() string) *upkeep {
	return &upkeep{
		past: past, logger: r.cfg.Logger,
		trim: func(ctx context.Context, past string) error { return r.servers.table.Trim(ctx, r.cfg.Table, past) },
		sweep: func(ctx context.Context) error {
			_, err := r.servers.table.Sweep(ctx, r.cfg.Table, r.model.Table.TTL, time.Now())
			return err
		},
	}
}

// run trims and sweeps side by side, since to sweep a large table takes minutes.
func (u *upkeep) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { u.every(ctx, trimInterval, u.trimOnce) })
	both.Go(func() { u.every(ctx, sweepInterval, u.sweep) })
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

func (u *upkeep) trimOnce(ctx context.Context) error {
	past := u.past()
	if past == "" || past == u.trimmed {
		return nil
	}
	err := u.trim(ctx, past)
	if err == nil {
		u.trimmed = past
	}
	return err
}
