package runner

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// upkeep is what DynamoDB does by itself: it removes expired items, and what
// every reader of the stream is past.
type upkeep struct {
	table  *tableserver.Server // nil: another server, whose stream is its own business
	client *dynamodb.Client
	ttl    string        // the attribute
	past   func() string // what every reader is past, "" while unknown
	logger *slog.Logger

	trimEvery, sweepEvery time.Duration
}

// sweepShare bounds the part of the time in which the table is swept, which
// reads all of it, to one in so many.
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
			err = u.sweep(ctx, started)
			sweep.Reset(max(u.sweepEvery, sweepShare*time.Since(started)))
		}
		if err != nil && ctx.Err() == nil {
			u.logger.WarnContext(ctx, "upkeep of the table failed", "error", err)
		}
	}
}

func (u *upkeep) trim(ctx context.Context) error {
	past := u.past()
	if u.table == nil || past == "" {
		return nil
	}
	_, err := u.table.Trim(ctx, tableName, past)
	return err
}

// sweep deletes what has expired. On another server, which may have no TTL of
// its own, only scanning the table finds that.
func (u *upkeep) sweep(ctx context.Context, now time.Time) (err error) {
	if u.table == nil {
		_, err = tableserver.SweepByScan(ctx, u.client, tableName, u.ttl, now)
		return err
	}
	_, err = u.table.SweepExpired(ctx, u.client, tableName, u.ttl, now)
	return err
}
