package webhook

import (
	"math"
	"math/bits"
)

// A histogram counts attempts by how long they took. Up to 15 ms every
// millisecond has a bucket of its own; from there each power of two has eight
// of equal width, so that the middle of a bucket is off by at most a
// sixteenth of what was measured.
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

// bucketMiddle is the time that stands for those of a bucket.
func bucketMiddle(bucket int) int64 {
	if bucket < exactBuckets {
		return int64(bucket)
	}
	octave, step := exactBits+(bucket-exactBuckets)/octaveBuckets, (bucket-exactBuckets)%octaveBuckets
	width := int64(1) << (octave - stepBits)
	return min(int64(octaveBuckets+step)*width+(width-1)/2, longestMs)
}

func (h *histogram) add(ms int64) { h[bucketOf(ms)]++ }

func (h *histogram) merge(o *histogram) {
	for i, n := range o {
		h[i] += n
	}
}

// percentile is by the nearest rank; ok is false when nothing was counted.
func (h *histogram) percentile(p float64) (ms int64, ok bool) {
	var total int64
	for _, n := range h {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	rank := max(int64(math.Ceil(p/100*float64(total))), 1)
	last := 0
	for i, n := range h {
		if n == 0 {
			continue
		}
		last = i
		if rank -= n; rank <= 0 {
			break
		}
	}
	return bucketMiddle(last), true
}
