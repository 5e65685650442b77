package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
)

func TestForReturnsAtItsTimeOrTheContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := pause.For(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %s, want nil after 1m0s", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := pause.For(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("got %v after %s, want the deadline after 1s", err, time.Since(start))
		}
	})
}
