// Package window is the arithmetic of a sliding rate limit: admissions are
// counted in short buckets over a little more than 60 seconds. While the total
// stays within the limit, no span of 60 s holds more than the limit, if the
// clocks of the instances that count differ by less than 0.6 s. Package
// ratelimit decides how much to count at a time; a store keeps the state.
//
// A span of 60 s plus the clock difference, 60.6 s, touches at most 61 buckets
// of 1.01 s; so the window is 61 buckets long, 61.6 s. An evenly
// spread load of up to 97.4% of the limit fits.
package window

import "time"

// The shape of a window.
const (
	Buckets = 61
	Width   = 1010 * time.Millisecond
)

// MaxAhead is how many buckets a head may be ahead of a clock. One that is
// further ahead comes from a wrong clock.
const MaxAhead = 5

// Window is the state of one subject: requests admitted, or given to an
// instance to admit, in each of the last buckets.
type Window struct {
	Version int64 // changes with every write; 0: not yet stored
	Head    int64 // the newest bucket
	Total   int64 // the sum of Counts
	Counts  [Buckets]int64
	Usage   Usage // of the head's day
}

// At returns the bucket that is current at the time.
func At(t time.Time) int64 { return t.UnixMilli() / Width.Milliseconds() }

// Start returns when the bucket begins.
func Start(bucket int64) time.Time { return time.UnixMilli(bucket * Width.Milliseconds()) }

// Index is the position of a bucket in Counts.
func Index(bucket int64) int { return int(bucket % Buckets) }

// Advance moves the head to the bucket and forgets the buckets that then lie
// outside of the window. A bucket just before the head changes nothing: clocks differ.
// When the head is far ahead, everything is counted in the bucket, which
// errs on the side of fewer admissions.
func (w *Window) Advance(bucket int64) {
	switch {
	case w.Head > bucket+MaxAhead:
		w.Counts = [Buckets]int64{}
		w.Counts[Index(bucket)] = w.Total
		w.Head = bucket
	case bucket-w.Head >= Buckets:
		w.Counts, w.Total, w.Head = [Buckets]int64{}, 0, bucket
	default:
		for w.Head < bucket {
			w.Head++
			w.Total -= w.Counts[Index(w.Head)]
			w.Counts[Index(w.Head)] = 0
		}
	}
}

// Add counts n in a bucket of the window, or takes back when n is negative.
func (w *Window) Add(bucket, n int64) {
	w.Counts[Index(bucket)] += n
	w.Total += n
}

// FreeAt returns when the total will be below the limit if nothing more is
// counted: at once (the start of the head) when it is already.
func (w *Window) FreeAt(limit int64) time.Time {
	total := w.Total
	if total < limit {
		return Start(w.Head)
	}
	for bucket := w.Head - Buckets + 1; bucket < w.Head; bucket++ {
		if total -= w.Counts[Index(bucket)]; total < limit {
			return Start(bucket + Buckets)
		}
	}
	return Start(w.Head + Buckets)
}

// OldestLeaves returns when the oldest admission that is counted leaves the
// window.
func (w *Window) OldestLeaves() time.Time {
	for bucket := w.Head - Buckets + 1; bucket < w.Head; bucket++ {
		if w.Counts[Index(bucket)] > 0 {
			return Start(bucket + Buckets)
		}
	}
	return Start(w.Head + Buckets)
}

// Extension counts Lease in the head bucket and takes Unused back from an
// older one, both at once.
type Extension struct {
	Head   int64
	Lease  int64 // at least 1
	From   int64 // the bucket that Unused was leased in
	Unused int64
	Limit  int64 // that the total must keep to
	Usage  Usage // to be added
}
