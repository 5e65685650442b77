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
	server     *tableserver.Server
	table, ttl string        // the table's name, and its attribute
	past       func() string // the position that every reader is past, "" while unknown
	logger     *slog.Logger

	trimEvery, sweepEvery time.Duration

	trimmed string // the last position that the stream was trimmed to
}

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
	_, err := u.server.Sweep(ctx, u.table, u.ttl, time.Now())
	return err
}

func (u *upkeep) trim(ctx context.Context) error {
	past := u.past()
	if past == "" || past == u.trimmed {
		return nil
	}
	err := u.server.Trim(ctx, u.table, past)
	if err == nil {
		u.trimmed = past
	}
	return err
}
