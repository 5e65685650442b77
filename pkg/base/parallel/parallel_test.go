package parallel_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/base/parallel"
)

func TestEachKeepsItsLimitAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sum atomic.Int64
		start := time.Now()
		parallel.Each(3, slices.All([]int64{1, 2, 3, 4, 5, 6, 7}), func(_ int, n int64) {
			time.Sleep(time.Second)
			sum.Add(n)
		})
		if took := time.Since(start); sum.Load() != 28 || took != 3*time.Second {
			t.Errorf("got the sum %d after %s, want 28 after three rounds of 3, 3 and 1 in 3s", sum.Load(), took)
		}
	})
}

func TestOneElementNeedsNoOtherGoroutine(t *testing.T) {
	stack := func() string {
		buffer := make([]byte, 64<<10)
		return string(buffer[:runtime.Stack(buffer, false)])
	}
	for _, test := range []struct {
		elements []int
		inPlace  bool
	}{{[]int{1}, true}, {[]int{1, 2}, false}} {
		parallel.Each(8, slices.All(test.elements), func(int, int) {
			if got := strings.Contains(stack(), t.Name()+"("); got != test.inPlace {
				t.Errorf("%d elements: done in the caller's goroutine: %t, want %t", len(test.elements), got, test.inPlace)
			}
		})
	}
}

func TestAnErrorIsReturnedAndCancelsTheOthers(t *testing.T) {
	failure := errors.New("failed")
	for _, test := range []struct {
		name     string
		elements []error // each call's error; nil: it waits for its context's end
		want     error
	}{
		{"none", nil, nil},
		{"one", []error{failure}, failure},
		{"one of several", []error{nil, failure, nil}, failure},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls atomic.Int64
			got := parallel.UntilError(t.Context(), 2, slices.All(test.elements), func(ctx context.Context, _ int, err error) error {
				calls.Add(1)
				if err == nil {
					<-ctx.Done()
					err = ctx.Err()
				}
				return err
			})
			if !errors.Is(got, test.want) || int(calls.Load()) != len(test.elements) {
				t.Errorf("got %v after %d calls, want %v after %d", got, calls.Load(), test.want, len(test.elements))
			}
			if err := t.Context().Err(); err != nil {
				t.Errorf("the caller's context: %v", err)
			}
		})
	}
}
