package runner

import (
	"context"
	"log/slog"
	"time"

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

// sweepShare bounds the share of time in which the table is swept, which reads all of it: one in so many.
const sweepShare = 50

func (u *upkeep) run(ctx context.Context) {
	trim, sweep := time.NewTicker(u.trimEvery), time.NewTimer(u.sweepEvery)
	defer trim.Stop()
	defer sweep.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-trim.C:
			err = u.trim(ctx)
		case <-sweep.C:
			started := time.Now()
			_, err = u.sweeper.Sweep(ctx, started)
			sweep.Reset(max(u.sweepEvery, sweepShare*time.Since(started)))
		}
		if err != nil && ctx.Err() == nil {
			u.logger.WarnContext(ctx, "upkeep of the table failed", "error", err)
		}
	}
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
