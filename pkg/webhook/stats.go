package webhook

import (
	"math"
	"math/bits"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
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
	At            value.Time `json:"at" doc:"The start of the interval."`
	SuccessCount  int64      `json:"successCount" doc:"Attempts answered 2xx."`
	FailureCount  int64      `json:"failureCount" doc:"Failed attempts."`
	FilteredCount int64      `json:"filteredCount" doc:"Events that the filter or the changed fields of the delivery settings kept from the endpoint. The number usually lags by two minutes. It lacks events of an instance that ended before it wrote them, and counts an event twice that was dispatched twice."`
	P50Ms         *int64     `json:"p50Ms" doc:"The median duration of attempts, successes and failures: milliseconds, exact to 10%. null if there was none."`
	P95Ms         *int64     `json:"p95Ms" doc:"The 95th percentile, in milliseconds."`
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
			SuccessCount: sums[i].SuccessCount, FailureCount: sums[i].FailureCount, FilteredCount: sums[i].FilteredCount,
			P50Ms: sums[i].Percentile(50), P95Ms: sums[i].Percentile(95),
		}
	}
	return points
}

// HourRetention is how long a finished hour is kept.
const HourRetention = 32 * 24 * time.Hour

// HourStats is what an endpoint counted in one hour of UTC, by the time at which
// the attempts were recorded. Its zero value has counted nothing.
type HourStats struct {
	Start        value.Time
	SuccessCount int64
	FailureCount int64
	// FilteredCount is how many events the endpoint's delivery settings kept from
	// it. It is counted apart from the attempts, and is not part of [HourStats.Encode].
	FilteredCount int64

	latencies histogram
}

func (h *HourStats) add(a *Attempt) {
	if a.Error == nil {
		h.SuccessCount++
	} else {
		h.FailureCount++
	}
	h.latencies[bucketOf(a.DurationMs)]++
}

// Merge adds what another counted, be it another writer's share of the same
// hour or another hour of the same day; the start stays.
func (h *HourStats) Merge(o *HourStats) {
	h.SuccessCount += o.SuccessCount
	h.FailureCount += o.FailureCount
	h.FilteredCount += o.FilteredCount
	for i, n := range o.latencies {
		h.latencies[i] += n
	}
}

// Percentile is the time in milliseconds within which p percent of the
// attempts ended, by the nearest rank, the failed ones among them; p lies above 0
// and up to 100, 50 being the median. It is off by at most a tenth, and at most
// 35,000; nil when nothing was counted.
func (h *HourStats) Percentile(p float64) *int64 {
	var total int64
	for _, n := range h.latencies {
		total += n
	}
	rank := max(int64(math.Ceil(p/100*float64(total))), 1)
	for i, n := range h.latencies {
		if rank -= n; rank <= 0 {
			return new(bucketMiddle(i))
		}
	}
	return nil
}

// Encode writes the hour, which [DecodeHourStats] reads.
func (h *HourStats) Encode() []byte { return encode(hourVersion, h, (*codec).hour) }

// DecodeHourStats reads what [HourStats.Encode] wrote. Anything else is an
// error.
func DecodeHourStats(b []byte) (*HourStats, error) {
	return decode("hour of an endpoint", hourVersion, b, (*codec).hour)
}

// A histogram counts attempts by how long they took. Up to 15 ms every
// millisecond has a bucket of its own; from there each power of two has eight
// of equal width, so that the middle of a bucket is off by at most a
// sixteenth of the measured value.
type histogram [histogramBuckets]int64

const (
	exactBits     = 4 // below 1<<exactBits milliseconds buckets are exact
	stepBits      = 3 // log2 of the buckets of a power of two
	longestMs     = 35_000
	exactBuckets  = 1 << exactBits
	octaveBuckets = 1 << stepBits

	// The last bucket is the one that holds longestMs, which lies in the
	// first eighth of the power of two that starts at 32,768.
	histogramBuckets = exactBuckets + (15-exactBits)*octaveBuckets + 1
)

// bucketOf is the bucket of a time in milliseconds; what lies outside of
// 0 to 35,000 counts as the nearest of them.
func bucketOf(ms int64) int {
	ms = min(max(ms, 0), longestMs)
	if ms < exactBuckets {
		return int(ms)
	}
	octave := bits.Len64(uint64(ms)) - 1 //nolint:gosec // not negative
	step := int(ms>>(octave-stepBits)) - octaveBuckets
	return exactBuckets + (octave-exactBits)*octaveBuckets + step
}

// bucketMiddle is the time that is shown for those of a bucket.
func bucketMiddle(bucket int) int64 {
	if bucket < exactBuckets {
		return int64(bucket)
	}
	octave, step := exactBits+(bucket-exactBuckets)/octaveBuckets, (bucket-exactBuckets)%octaveBuckets
	width := int64(1) << (octave - stepBits)
	return min(int64(octaveBuckets+step)*width+(width-1)/2, longestMs)
}
