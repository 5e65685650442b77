package indexing

import (
	"context"
	"math"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// Interval is how a list is divided into parts.
type Interval uint8

// A list is one part, or has one for each calendar month or day, in UTC.
const (
	Whole Interval = iota
	Monthly
	Daily
)

// List is what the index needs to know of a list.
type List struct {
	Name   string
	Schema *columnar.Schema
	// By divides the list by the Time column On. A document without one is in
	// part 0, as all documents of a list that is Whole.
	By Interval
	On columnar.Col
	// Keep is how long a document is of use after the time in On; 0 is for
	// ever. Parts of which every document is older are dropped.
	Keep time.Duration
	// Shards and Read give all documents from the table, for a rebuild: Read
	// returns some of a shard's documents and where to go on, "" at its end.
	// Visible is not set.
	Shards int
	Read   func(ctx context.Context, org value.ID, shard int, after string) (documents []columnar.Document, next string, err error)
}

// Parts of a monthly list before and after these share one, so that dates out
// of all reason do not make a part each.
const (
	firstYear = 2000
	lastYear  = 2099
)

// part is the number of the part that a document with this time is in.
func (l *List) part(ms int64) int32 {
	switch l.By {
	case Monthly:
		t := time.UnixMilli(ms).UTC()
		if t.Year() > lastYear {
			return (lastYear + 1) * 12
		}
		return int32(max(t.Year()*12+int(t.Month())-1, firstYear*12-1)) //nolint:gosec // bounded on both sides
	case Daily:
		return int32(min(max(ms/dayMillis, 1), math.MaxInt32)) //nolint:gosec // bounded on both sides
	}
	return 0
}

const dayMillis = 24 * 60 * 60 * 1000

// partOf is the part of a document that is not deleted.
func (l *List) partOf(d *columnar.Document) int32 {
	if l.By == Whole {
		return 0
	}
	ms, ok := d.Time(l.On)
	if !ok {
		return 0
	}
	return l.part(ms)
}

// end is the first moment after a part.
func (l *List) end(part int32) time.Time {
	if l.By == Monthly {
		return time.Date(0, time.Month(part)+2, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.UnixMilli((int64(part) + 1) * dayMillis)
}

// expired says whether a part holds only documents that are of no use any more.
func (l *List) expired(part int32, now time.Time) bool {
	return l.By != Whole && l.Keep > 0 && part > 0 && l.end(part).Before(now.Add(-l.Keep))
}
