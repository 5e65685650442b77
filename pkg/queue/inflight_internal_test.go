package queue

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTooManyInFlightGoesByACountOfTheLastTwoSeconds(t *testing.T) {
	now, counts, n := time.Now(), 0, MaxInFlight
	var fail error
	c := inFlight{now: func() time.Time { return now }, count: func(context.Context) (int, error) {
		counts++
		return n, fail
	}}
	for i, step := range []struct {
		pass   time.Duration
		n      int
		err    error
		want   bool
		counts int
	}{
		{0, MaxInFlight, nil, false, 1},
		{time.Second, MaxInFlight + 1, nil, false, 1},
		{time.Second, MaxInFlight + 1, nil, true, 2},
		{3 * time.Second, 0, errors.New("throttled"), true, 3},
		{time.Second, 0, nil, true, 3},
		{time.Second, 0, nil, false, 4},
	} {
		now, n, fail = now.Add(step.pass), step.n, step.err
		if got := c.tooMany(t.Context()); got != step.want || counts != step.counts {
			t.Errorf("step %d: too many %t after %d counts, want %t after %d", i, got, counts, step.want, step.counts)
		}
	}
}
