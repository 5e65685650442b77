package webhook

import (
	"time"

	"github.com/commerce-integration/service/pkg/value"
)

// MaxStatsSpan is the most time that statistics are shown of at once.
const MaxStatsSpan = 31 * 24 * time.Hour

// StatsInterval is the time that one point of statistics covers.
type StatsInterval string

// The intervals, both in UTC.
const (
	StatsHour StatsInterval = "hour"
	StatsDay  StatsInterval = "day"
)

// Values lists every interval.
func (StatsInterval) Values() []string { return []string{string(StatsHour), string(StatsDay)} }

// length is the interval in milliseconds.
func (i StatsInterval) length() value.Time {
	if i == StatsDay {
		return value.Time((24 * time.Hour).Milliseconds())
	}
	return value.Time(time.Hour.Milliseconds())
}

// Start is the start of the interval in which t lies.
func (i StatsInterval) Start(t value.Time) value.Time { return t - t%i.length() }

// End is the end of the interval in which t lies.
func (i StatsInterval) End(t value.Time) value.Time { return i.Start(t) + i.length() }

// StatsPoint is one interval of an endpoint's statistics as the API shows it.
type StatsPoint struct {
	At           value.Time `json:"at" doc:"The start of the interval."`
	SuccessCount int64      `json:"successCount" doc:"Attempts that were answered 2xx."`
	FailureCount int64      `json:"failureCount" doc:"Attempts that were not."`
	P50Ms        *int64     `json:"p50Ms" doc:"The time that half of the attempts, successes and failures, took at most: milliseconds, exact to 10%. null when there was none."`
	P95Ms        *int64     `json:"p95Ms" doc:"The time that 95% of them took at most."`
}

// Stats joins hours, in any order, into one point for every interval that
// touches [from, to), the empty ones too, in the order of time. Hours that
// lie in none of them are left out. The caller bounds the span.
func Stats(hours []*HourStats, interval StatsInterval, from, to value.Time) []StatsPoint {
	length, first := interval.length(), interval.Start(from)
	if to <= from {
		return []StatsPoint{}
	}
	sums := make([]HourStats, (to-first+length-1)/length)
	for _, h := range hours {
		if i := (h.Start - first) / length; h.Start >= first && i < value.Time(len(sums)) {
			sums[i].Merge(h)
		}
	}
	points := make([]StatsPoint, len(sums))
	for i := range sums {
		points[i] = StatsPoint{
			At:           first + value.Time(i)*length,
			SuccessCount: sums[i].SuccessCount, FailureCount: sums[i].FailureCount,
			P50Ms: sums[i].shownPercentile(50), P95Ms: sums[i].shownPercentile(95),
		}
	}
	return points
}

func (h *HourStats) shownPercentile(p float64) *int64 {
	ms, ok := h.Percentile(p)
	if !ok {
		return nil
	}
	return &ms
}
