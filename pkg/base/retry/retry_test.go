package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/retry"
)

func TestContendedWritesAreTriedAgainWithinTheirBound(t *testing.T) {
	failure := errors.New("failed")
	for _, test := range []struct {
		name   string
		doneAt int // the call that is done, 0: none
		err    error
		calls  int
		want   error
	}{
		{"done at once", 1, nil, 1, nil},
		{"done after others", 3, nil, 3, nil},
		{"failed", 2, failure, 2, failure},
		{"never done", 0, nil, 5, retry.ErrContended},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				err := retry.Contended(t.Context(), 5, func() (bool, error) {
					calls++
					if calls == test.doneAt {
						return test.err == nil, test.err
					}
					return false, nil
				})
				if calls != test.calls || !errors.Is(err, test.want) {
					t.Errorf("got %v after %d calls, want %v after %d", err, calls, test.want, test.calls)
				}
				if test.doneAt == 0 && !fault.Is(err, fault.Unavailable) {
					t.Errorf("got %v, want a fault of kind Unavailable", err)
				}
			})
		})
	}
}

func TestContendedEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := retry.Contended(ctx, 5, func() (bool, error) {
		cancel()
		return false, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}
