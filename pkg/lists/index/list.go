package index

import (
	"context"
	"math"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// Interval is how a list is divided into partitions.
type Interval uint8

// A list is one partition, or has one for each calendar month or day, in UTC.
const (
	Whole Interval = iota
	Monthly
	Daily
)

// List is what the index needs to know about a list.
type List struct {
	Name   string
	Schema *columnar.Schema
	// By divides the list by the Time column On. Documents without that time,
	// and all documents of a Whole list, are in partition 0.
	By Interval
	On columnar.Col
	// Keep is how long a document is useful after the time in On; 0 means for
	// ever. Partitions with only older documents are dropped.
	Keep time.Duration
	// Shards and Read give a rebuild all documents of the table: Read returns
	// some of a shard's documents and where to continue, "" at the shard's end.
	// Visible is not set.
	Shards int
	Read   func(ctx context.Context, org value.ID, shard int, after string) (documents []columnar.Document, next string, err error)
}

// Key names a list of an organization.
type Key struct {
	Org  value.ID
	List *List
}

// Months before and after these years share one partition each, so that
// absurd dates do not make a partition of their own.
const (
	firstYear = 2000
	lastYear  = 2099
	dayMillis = 24 * 60 * 60 * 1000
)

// partition is the number of the partition for a time: months since year 0, or
// days since 1970.
func (l *List) partition(ms int64) int32 {
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

// PartitionOf is the partition of a document that is not deleted.
func (l *List) PartitionOf(d *columnar.Document) int32 {
	if ms, ok := l.time(d); ok {
		return l.partition(ms)
	}
	return 0
}

// time is the time that decides about a document's partition and age.
func (l *List) time(d *columnar.Document) (ms int64, ok bool) {
	if l.By == Whole {
		return 0, false
	}
	return d.Time(l.On)
}

// end is the first moment after a partition.
func (l *List) end(partition int32) time.Time {
	if l.By == Monthly {
		return time.Date(0, time.Month(partition)+2, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.UnixMilli((int64(partition) + 1) * dayMillis)
}

// Expired reports whether every document that the partition can hold is too
// old to be useful.
func (l *List) Expired(partition int32, now time.Time) bool {
	return l.Keep > 0 && partition > 0 && l.end(partition).Before(now.Add(-l.Keep))
}

// ExpiredDocument reports whether a document is too old to be useful.
func (l *List) ExpiredDocument(d *columnar.Document, now time.Time) bool {
	ms, ok := l.time(d)
	return ok && l.Keep > 0 && ms < now.Add(-l.Keep).UnixMilli()
}
