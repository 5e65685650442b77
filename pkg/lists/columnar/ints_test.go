package columnar

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A full row group of each width answers as its values do, also after changes that the
// width does not hold.
func TestPackedIntsAreTheirValues(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, row := range []struct {
		name string
		lo   int64
		span uint64
	}{
		{"one value", 77, 0},
		{"one byte", -100, math.MaxUint8},
		{"two bytes", 1 << 40, math.MaxUint16},
		{"four bytes", -5, math.MaxUint32},
		{"eight bytes", 0, math.MaxInt64},
		{"all of int64", math.MinInt64, math.MaxUint64 - 1},
		{"codes of a byte", 3, 200},
		{"codes of two bytes", 0, 1000},
		{"codes of four bytes", 9, 100_000},
	} {
		t.Run(row.name, func(t *testing.T) {
			x, values := newInts(), make([]int64, MaxRowGroup)
			for i := range values {
				values[i] = row.lo + int64(random.Uint64N(row.span+1))
				x.append(values[i])
			}
			checkInts(t, &x, values, random)
			x.pack()
			checkInts(t, &x, values, random)
			values[7], values[4095] = row.lo/2+3, math.MaxInt64
			x.set(7, MaxRowGroup, values[7])
			x.set(4095, MaxRowGroup, values[4095])
			checkInts(t, &x, values, random)
		})
	}
}

func TestPackedIntsMayAllBeNull(t *testing.T) {
	x := newInts()
	for range MaxRowGroup {
		x.appendNull()
	}
	x.pack()
	rows := RowSet{3}
	if x.within(5, 9, &rows); rows.Count() != 0 {
		t.Errorf("%d rows of no values lie in [5, 9], want 0", rows.Count())
	}
	if x.bytes() != 24+MaxRowGroup {
		t.Errorf("no values take %d bytes, want %d", x.bytes(), 24+MaxRowGroup)
	}
}

func checkInts(t *testing.T, x *Ints, values []int64, random *rand.Rand) {
	t.Helper()
	for i, v := range values {
		if got := x.At(i); got != v {
			t.Fatalf("row %d is %d, want %d", i, got, v)
		}
	}
	for range 20 {
		a, b := values[random.IntN(len(values))], values[random.IntN(len(values))]
		checkWithin(t, x, values, a, a)
		checkWithin(t, x, values, min(a, b), max(a, b))
		checkWithin(t, x, values, max(a, b), min(a, b))
		checkWithin(t, x, values, a, math.MaxInt64)
		checkWithin(t, x, values, math.MinInt64, a)
	}
	if x.lo >= 0 && x.hi < 1<<20 {
		checkAmong(t, x, values, random)
	}
}

func someRows(n int) RowSet {
	var rows RowSet
	for i := range n {
		// Some words are empty, some full, some mixed.
		if i/64%5 != 0 && (i/64%5 != 1 || i%3 == 0) {
			rows.add(i)
		}
	}
	return rows
}

func checkWithin(t *testing.T, x *Ints, values []int64, lo, hi int64) {
	t.Helper()
	rows := someRows(len(values))
	want := rows
	for i, v := range values {
		if v < lo || v > hi {
			want.drop(i)
		}
	}
	if x.within(lo, hi, &rows); rows != want {
		t.Fatalf("within(%d, %d): %d rows, want %d", lo, hi, rows.Count(), want.Count())
	}
}

func checkAmong(t *testing.T, x *Ints, values []int64, random *rand.Rand) {
	t.Helper()
	set := make([]uint64, x.hi>>6+1)
	for range 40 {
		v := values[random.IntN(len(values))]
		set[v>>6] |= 1 << (v & 63)
	}
	rows := someRows(len(values))
	want := rows
	for i, v := range values {
		if set[v>>6]>>(v&63)&1 == 0 {
			want.drop(i)
		}
	}
	if x.among(set, &rows); rows != want {
		t.Fatalf("among: %d rows, want %d", rows.Count(), want.Count())
	}
}
