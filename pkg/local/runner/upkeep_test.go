package runner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestUpkeepTrimsToWhatAllReadersArePastAndSweepsEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		positions := []string{"", "", "4", "4", "4", "9"} // by the second
		var trims []string
		sweeps := 0
		u := &upkeep{
			logger: slog.New(slog.DiscardHandler),
			past:   func() string { return positions[min(int(time.Since(began)/time.Second), len(positions))-1] },
			trim: func(_ context.Context, past string) error {
				if trims = append(trims, past); len(trims) == 1 {
					return errors.New("the table is busy")
				}
				return nil
			},
			sweep: func(context.Context) error { sweeps++; return errors.New("the table is busy") },
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		u.run(ctx)
		if want := []string{"4", "4", "9"}; !slices.Equal(trims, want) || sweeps != 2 {
			t.Errorf("trimmed to %v, and %d sweeps; want %v, a failed one again, and 2", trims, sweeps, want)
		}
	})
}
