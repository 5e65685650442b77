package webhook_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// hourOf is an hour whose attempts took so many milliseconds.
func hourOf(start value.Time, took ...int64) *webhook.HourStats {
	tally := &webhook.Tally{}
	for _, ms := range took {
		tally = add(tally, start, attempt(start, time.Duration(ms)*time.Millisecond, ""))
	}
	return tally.Hour()
}

func TestPercentilesAreOffByATenthAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 35_000), rapid.Int64Range(0, 300)), 1, 60).Draw(t, "took")
		p := rapid.Float64Range(0.001, 100).Draw(t, "p")
		part := rapid.IntRange(0, len(took)).Draw(t, "part")
		hour := hourOf(now, took[:part]...)
		hour.Merge(hourOf(now, took[part:]...))
		got := *hour.Percentile(p)
		slices.Sort(took)
		want := took[max(int(math.Ceil(p/100*float64(len(took)))), 1)-1]
		if off := math.Abs(float64(got - want)); off > float64(want)/10 {
			t.Fatalf("p%g of %v is %d; want %d within a tenth", p, took, got, want)
		}
	})
}

func TestPercentilesAtTheEdges(t *testing.T) {
	for given, want := range map[int64]int64{-5: 0, 0: 0, 7: 7, 15: 15, 35_000: 34_815, 1 << 40: 34_815} {
		t.Run(fmt.Sprint(given), func(t *testing.T) {
			if got := *hourOf(now, given).Percentile(100); got != want {
				t.Errorf("%d ms counts as %d, want %d", given, got, want)
			}
		})
	}
	if ms := new(webhook.HourStats).Percentile(50); ms != nil {
		t.Errorf("the median of nothing is %d", *ms)
	}
}

func TestStatsCoverEveryInterval(t *testing.T) {
	day := value.Time(1795219200000) // 2026-11-21T00:00:00.000Z
	at := func(hours int) value.Time { return day.Add(time.Duration(hours) * time.Hour) }
	failed := add(&webhook.Tally{}, at(2), attempt(at(2), 14*time.Millisecond, "no")).Hour()
	hours := []*webhook.HourStats{hourOf(at(26), 1, 2), hourOf(at(2), 10, 12), failed, hourOf(at(-1), 9), hourOf(at(48), 9)}
	point := func(at value.Time, successes, failures, p50, p95 int64) webhook.StatsPoint {
		if successes+failures == 0 {
			return webhook.StatsPoint{At: at}
		}
		return webhook.StatsPoint{At: at, SuccessCount: successes, FailureCount: failures, P50Ms: &p50, P95Ms: &p95}
	}
	for name, tt := range map[string]struct {
		interval webhook.StatsInterval
		from, to value.Time
		want     []webhook.StatsPoint
	}{
		"days":                {webhook.StatsDay, day, at(48), []webhook.StatsPoint{point(at(0), 2, 1, 12, 14), point(at(24), 2, 0, 1, 2)}},
		"parts of two days":   {webhook.StatsDay, at(23), at(24) + 1, []webhook.StatsPoint{point(at(0), 2, 1, 12, 14), point(at(24), 2, 0, 1, 2)}},
		"hours":               {webhook.StatsHour, at(1), at(4), []webhook.StatsPoint{point(at(1), 0, 0, 0, 0), point(at(2), 2, 1, 12, 14), point(at(3), 0, 0, 0, 0)}},
		"a part of one hour":  {webhook.StatsHour, at(2) + 5, at(2) + 6, []webhook.StatsPoint{point(at(2), 2, 1, 12, 14)}},
		"nothing":             {webhook.StatsHour, at(2), at(2), []webhook.StatsPoint{}},
		"the wrong way round": {webhook.StatsHour, at(2), at(1), []webhook.StatsPoint{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, webhook.Stats(hours, tt.interval, tt.from, tt.to)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}
