package webhook

import (
	"time"

	"github.com/commerce-integration/service/pkg/value"
)

// HourRetention is how long a finished hour is kept.
const HourRetention = 32 * 24 * time.Hour

// Hour is what an endpoint counted in one hour of UTC, by the time at which
// the attempts were recorded. Its zero value has counted nothing.
type HourStats struct {
	Start        value.Time
	SuccessCount int64
	FailureCount int64

	latencies histogram
}

// HourOf is the start of the hour in which t lies.
func HourOf(t value.Time) value.Time { return t - t%value.Time(time.Hour.Milliseconds()) }

func (h *HourStats) add(a *Attempt) {
	if a.Error == nil {
		h.SuccessCount++
	} else {
		h.FailureCount++
	}
	h.latencies.add(a.DurationMs)
}

// Merge adds what another counted, be it another writer's share of the same
// hour or another hour of the same day; the start stays.
func (h *HourStats) Merge(o *HourStats) {
	h.SuccessCount += o.SuccessCount
	h.FailureCount += o.FailureCount
	h.latencies.merge(&o.latencies)
}

// Percentile is the time in milliseconds within which p percent of the
// attempts ended, the failed ones among them; p lies above 0 and up to 100,
// 50 being the median. It is off by at most a tenth, and 35,000 stands for
// everything longer. ok is false when nothing was counted.
func (h *HourStats) Percentile(p float64) (ms int64, ok bool) { return h.latencies.percentile(p) }

// Encode writes the hour, which [DecodeHour] reads.
func (h *HourStats) Encode() []byte { return appendHour([]byte{hourVersion}, h) }

// DecodeHour reads what [Hour.Encode] wrote. Anything else is an error.
func DecodeHourStats(b []byte) (*HourStats, error) {
	d := decoder{rest: b}
	d.version(hourVersion)
	h := d.hour()
	if err := d.end("hour of an endpoint", b, h.Encode); err != nil {
		return nil, err
	}
	return h, nil
}
