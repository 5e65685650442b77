package index

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
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
	Kind   commerce.Kind // of the records whose own fields the documents have; "" for none
	Format int           // of its manifests and segments; 0 means [Format]
	// By divides the list by the Time column On. Documents without that time,
	// and all documents of a Whole list, are in partition 0.
	By Interval
	On columnar.Col
	// PartRows is how many documents a partition has at least before it is divided,
	// while there are few partitions; 0 means the default of the interval.
	PartRows int
	// Keep is how long a document is useful after the time in On; 0 means for
	// ever. Partitions with only older documents are dropped.
	Keep time.Duration
	// Shards and Read give a rebuild all documents of the table: Read returns
	// some of a shard's documents and where to continue, "" at the shard's end.
	// Visible is not set.
	Shards int
	Read   func(ctx context.Context, org value.ID, shard int, after string) (documents []columnar.Document, next string, err error)
	// Get reads the documents with the ids from the table, strongly consistent, with own
	// fields or without. Visible is not set. It is nil for a list that is not filtered by
	// ids.
	Get func(ctx context.Context, org value.ID, ids [][16]byte, own bool) ([]columnar.Document, error)
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

const (
	// A page in the order of time opens the newest part of a month or a day, so
	// those are small: 20,000 orders are about 50 read units. Changes of a list
	// without times go to any of its parts, and make a segment in each, so those are
	// large: as large as a job or a query has memory for.
	timedPartRows = 20_000
	wholePartRows = 250_000
	// manyPartitions is how many there are before parts become larger, twice as large
	// with each growth of morePartitions, so that the manifest, of about 300 B for
	// each, fits into an item of 400 KB.
	manyPartitions = 512
	morePartitions = 128
)

// DividedRows is how many documents each part gets of a partition that is divided:
// one that has half as many more, where there are so many partitions.
func (l *List) DividedRows(partitions int) int {
	rows := l.PartRows
	switch {
	case rows > 0:
	case l.By == Whole:
		rows = wholePartRows
	default:
		rows = timedPartRows
	}
	return rows << min(max(partitions-manyPartitions+morePartitions, 0)/morePartitions, 10)
}

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

// Lists are all lists of an organization.
type Lists struct {
	Records    map[commerce.Kind]*List
	Deletions  *List
	Deliveries *List // the webhook history
}

// Source reads what lists are rebuilt from, page by page of a shard.
type Source interface {
	FieldReader
	Records(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error)
	RecordsPage(ctx context.Context, org value.ID, kind commerce.Kind, shard int, after string, limit int) (page []*commerce.Stored, next string, err error)
	DeliveriesPage(ctx context.Context, org value.ID, shard int, after string, limit int) (page []*webhook.Delivery, next string, err error)
}

const (
	// sourcePage is how many items a rebuild reads at a time.
	sourcePage = 1000
	// DeliveryListName names the list of deliveries in the table's keys.
	DeliveryListName = "webhook-events"
)

// NewLists declares the lists over the source, which spreads the records of a
// kind, and the deliveries, over so many shards.
func NewLists(source Source, shards int) *Lists {
	kinds, deletions, deliveries := commerce.Kinds(), commerce.DeletionList(), webhook.DeliveryList().Schema
	l := &Lists{
		Records: map[commerce.Kind]*List{},
		Deletions: &List{
			Name: deletions.Name, Schema: deletions.Schema, By: Monthly, On: deletions.Schema.Col("deletedAt"), Keep: commerce.TombstoneAge,
			Shards: len(kinds) * shards,
			Read: reader(func(ctx context.Context, org value.ID, shard int, after string) ([]*commerce.Stored, string, error) {
				return source.RecordsPage(ctx, org, kinds[shard/shards], shard%shards, after, sourcePage)
			}, func(s *commerce.Stored) (*columnar.Document, error) { return DeletionDocument(s), nil }),
		},
		Deliveries: &List{
			Name: DeliveryListName, Schema: deliveries, By: Daily, On: deliveries.Col("createdAt"), Keep: webhook.Retention, Shards: shards,
			Read: reader(func(ctx context.Context, org value.ID, shard int, after string) ([]*webhook.Delivery, string, error) {
				return source.DeliveriesPage(ctx, org, shard, after, sourcePage)
			}, func(d *webhook.Delivery) (*columnar.Document, error) { return new(webhook.DeliveryDocument(d, 0)), nil }),
		},
	}
	for _, kind := range kinds {
		list := &List{Name: kind.Plural(), Schema: commerce.ListOf(kind).Schema, Shards: shards}
		if kind.Monthly() {
			list.By, list.On = Monthly, list.Schema.Col("createdAt")
		}
		if kind.HasFields() {
			list.Kind = kind
		}
		list.Read = func(ctx context.Context, org value.ID, shard int, after string) ([]columnar.Document, string, error) {
			fields, err := Key{org, list}.Fields(ctx, source)
			if err != nil {
				return nil, "", err
			}
			return reader(func(ctx context.Context, org value.ID, shard int, after string) ([]*commerce.Stored, string, error) {
				return source.RecordsPage(ctx, org, kind, shard, after, sourcePage)
			}, withFields(fields))(ctx, org, shard, after)
		}
		list.Get = getter(source, kind)
		l.Records[kind] = list
	}
	return l
}

// reader makes a [List.Read] of a function that reads pages and one that turns
// an item into a document, nil when the list does not show it.
func reader[T any](
	page func(ctx context.Context, org value.ID, shard int, after string) ([]T, string, error),
	document func(T) (*columnar.Document, error),
) func(context.Context, value.ID, int, string) ([]columnar.Document, string, error) {
	return func(ctx context.Context, org value.ID, shard int, after string) ([]columnar.Document, string, error) {
		items, next, err := page(ctx, org, shard, after)
		if err != nil {
			return nil, "", err
		}
		documents, err := documentsOf(slices.Values(items), document)
		return documents, next, err
	}
}

// getter makes the [List.Get] of a kind.
func getter(source Source, kind commerce.Kind) func(context.Context, value.ID, [][16]byte, bool) ([]columnar.Document, error) {
	return func(ctx context.Context, org value.ID, ids [][16]byte, own bool) (_ []columnar.Document, err error) {
		var fields commerce.Fields
		if own {
			if fields, err = source.Fields(ctx, org); err != nil {
				return nil, err
			}
		}
		wanted := make([]value.ID, len(ids))
		for i, id := range ids {
			wanted[i] = id
		}
		found, err := source.Records(ctx, org, kind, wanted)
		if err != nil {
			return nil, err
		}
		return documentsOf(maps.Values(found), withFields(fields))
	}
}

// withFields makes documents of records with the fields.
func withFields(fields commerce.Fields) func(*commerce.Stored) (*columnar.Document, error) {
	return func(s *commerce.Stored) (*columnar.Document, error) { return RecordDocument(s, fields) }
}

func documentsOf[T any](items iter.Seq[T], document func(T) (*columnar.Document, error)) (documents []columnar.Document, err error) {
	for item := range items {
		d, err := document(item)
		if err != nil {
			return nil, err
		}
		if d != nil {
			documents = append(documents, *d)
		}
	}
	return documents, nil
}

// All returns every list, those of records first.
func (l *Lists) All() []*List {
	var all []*List
	for _, kind := range commerce.Kinds() {
		all = append(all, l.Records[kind])
	}
	return append(all, l.Deletions, l.Deliveries)
}

// Named returns the list with the name, nil when there is none.
func (l *Lists) Named(name string) *List {
	for _, list := range l.All() {
		if list.Name == name {
			return list
		}
	}
	return nil
}

// RecordDocument is what the list of its kind shows of a record, with the fields of its
// organization; nil when it shows nothing. Visible is not set.
func RecordDocument(s *commerce.Stored, fields commerce.Fields) (*columnar.Document, error) {
	if s == nil || s.Deleted {
		return nil, nil
	}
	document, err := commerce.Document(s, 0, fields)
	return &document, err
}

// DeletionDocument is what the list of deletions shows of a record, nil when it
// shows nothing. Visible is not set.
func DeletionDocument(s *commerce.Stored) *columnar.Document {
	if s == nil || !s.Deleted {
		return nil
	}
	return new(commerce.DeletionDocument(s, 0))
}
