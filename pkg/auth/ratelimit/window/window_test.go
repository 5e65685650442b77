package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAdvanceForgetsExactlyWhatLeavesTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Window{Head: 1000}
		counted := map[int64]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.Advance(w.Head + rapid.Int64Range(0, 80).Draw(t, "forward"))
			n := rapid.Int64Range(0, 9).Draw(t, "n")
			w.Add(w.Head, n)
			counted[w.Head] += n
			want := int64(0)
			for bucket, n := range counted {
				if bucket > w.Head-Buckets {
					want += n
				}
			}
			if w.Total != want {
				t.Fatalf("head %d: total %d, want %d", w.Head, w.Total, want)
			}
		}
	})
}

func TestFreeAtIsTheFirstTimeWithAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Window{Head: 1000}
		for range rapid.IntRange(1, 30).Draw(t, "buckets") {
			w.Add(w.Head, rapid.Int64Range(0, 5).Draw(t, "n"))
			w.Advance(w.Head + rapid.Int64Range(1, 4).Draw(t, "forward"))
		}
		limit := rapid.Int64Range(1, 60).Draw(t, "limit")
		free := At(w.FreeAt(limit))
		for bucket := w.Head; bucket <= free; bucket++ {
			at := w
			at.Advance(bucket)
			if got, want := at.Total < limit, bucket == free; got != want {
				t.Fatalf("limit %d, bucket %d of head %d (free at %d): place %v, want %v", limit, bucket, w.Head, free, got, want)
			}
		}
	})
}

func TestASpanOf60SecondsWithSkewedClocksFitsTheWindow(t *testing.T) {
	const skew = 600 * time.Millisecond
	for offset := range Width.Milliseconds() {
		start := Start(500).Add(time.Duration(offset) * time.Millisecond)
		end := start.Add(time.Minute + skew - time.Millisecond)
		if n := At(end) - At(start) + 1; n > Buckets {
			t.Fatalf("60 s from %d ms into a bucket touch %d buckets, want at most %d", offset, n, Buckets)
		}
	}
}

func TestAHeadFarAheadIsCountedAsOfNow(t *testing.T) {
	w := Window{Head: 5000}
	w.Add(5000, 3)
	w.Add(4990, 4)
	w.Advance(1000)
	if w.Head != 1000 || w.Total != 7 || w.Counts[Index(1000)] != 7 {
		t.Errorf("got head %d, total %d, want head 1000 with all 7 counted in it", w.Head, w.Total)
	}
	w.Advance(1000 - MaxAhead)
	if w.Head != 1000 {
		t.Errorf("a clock a little behind moved the head to %d", w.Head)
	}
}
