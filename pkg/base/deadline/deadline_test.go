package deadline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
)

func TestContextsEndWhenTheirDeadlineSays(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration // of the invocation, 0: none
		of      func(context.Context) (context.Context, context.CancelFunc)
		want    time.Duration // until the context ends, 0: never
	}{
		{"before a deadline", time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return deadline.Before(ctx, 5*time.Second)
		}, 55 * time.Second},
		{"before none", 0, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return deadline.Before(ctx, 5*time.Second)
		}, 0},
		{"finish within the margin", 10 * time.Second, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return deadline.Finish(ctx, time.Second, 20*time.Second)
		}, 9 * time.Second},
		{"finish after the deadline", 10 * time.Second, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return deadline.Finish(ctx, -4*time.Second, time.Minute)
		}, 14 * time.Second},
		{"finish within the limit", time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return deadline.Finish(ctx, time.Second, 20*time.Second)
		}, 20 * time.Second},
		{"finish without a deadline", 0, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return deadline.Finish(ctx, time.Second, 20*time.Second)
		}, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.timeout > 0 {
					limited, cancel := context.WithTimeout(ctx, test.timeout)
					defer cancel()
					ctx = limited
				}
				start := time.Now()
				got, cancel := test.of(ctx)
				defer cancel()
				end, limited := got.Deadline()
				if limited != (test.want > 0) || limited && end.Sub(start) != test.want {
					t.Errorf("ends after %s (limited: %t), want %s", end.Sub(start), limited, test.want)
				}
			})
		})
	}
}

func TestFinishOutlivesACancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	finishing, done := deadline.Finish(ctx, 0, time.Minute)
	defer done()
	if finishing.Err() != nil {
		t.Errorf("ended with %v, want it to go on", finishing.Err())
	}
}
