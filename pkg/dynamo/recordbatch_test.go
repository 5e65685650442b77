package dynamo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// manyRecords are records of every form that one can have.
func manyRecords(org value.ID, n int, now value.Time) []*commerce.Stored {
	records := make([]*commerce.Stored, n)
	for i := range records {
		s := &commerce.Stored{
			OrganizationID: org, Kind: commerce.Kinds()[i%len(commerce.Kinds())], ID: value.NewRandomID(),
			Revision: now, Doc: fmt.Appendf(nil, `{"n":%d,"name":"Gül 🎁"}`, i),
		}
		if i%2 == 0 {
			version := int64(i)
			s.Version = &version
		}
		if i%3 == 0 {
			s.Arrived, s.Silent = now.Add(-time.Second), true
		}
		if i%5 == 0 {
			s.SiteIDs = []value.ID{value.NewID(), value.NewID()}
		}
		if i%7 == 0 {
			s.Doc, s.SiteIDs, s.Deleted = nil, nil, true
		}
		records[i] = s
	}
	return records
}

func refsOf(records []*commerce.Stored) []dynamo.RecordRef {
	refs := make([]dynamo.RecordRef, len(records))
	for i, s := range records {
		refs[i] = dynamo.RecordRef{OrganizationID: s.OrganizationID, Kind: s.Kind, ID: s.ID}
	}
	return refs
}

// checkStored compares what the table holds; nil stands for nothing.
func checkStored(t *testing.T, table *dynamo.Table, refs []dynamo.RecordRef, want []*commerce.Stored) {
	t.Helper()
	for i, got := range table.ReadRecords(t.Context(), refs) {
		if got.Err != nil || cmp.Diff(got.Stored, want[i]) != "" {
			t.Errorf("record %d, %v: %v\n%s", i, refs[i], got.Err, cmp.Diff(got.Stored, want[i]))
		}
	}
}

// The records of two organizations have the same ids.
func TestRecordsAreCreatedTogetherAndReadTogether(t *testing.T) {
	table, now := dynamotest.NewTable(t), value.TimeOf(time.Now())
	one := manyRecords(value.NewID(), 70, now)
	other, third := value.NewID(), value.NewID()
	both := one
	var absent []dynamo.RecordRef
	for i, s := range one {
		also := *s
		also.OrganizationID = other
		also.Revision += value.Time(i + 1)
		both = append(both, &also)
		absent = append(absent, dynamo.RecordRef{OrganizationID: third, Kind: s.Kind, ID: s.ID})
	}
	for i, err := range table.CreateRecords(t.Context(), both) {
		if err != nil {
			t.Errorf("record %d %+v: %v", i, both[i], err)
		}
	}
	checkStored(t, table, refsOf(both), both)
	checkStored(t, table, absent, make([]*commerce.Stored, len(absent)))
	if got := table.CreateRecords(t.Context(), nil); len(got) > 0 {
		t.Errorf("CreateRecords of none: %v", got)
	}
}

func TestRecordIsCreatedOnceAndOnlyWhereThereIsNone(t *testing.T) {
	start := value.TimeOf(time.Now())
	now := start
	table, org := tableAt(t, &now), value.NewID()
	records := manyRecords(org, 30, now)
	want := make([]*commerce.Stored, len(records))
	wrong := make([]error, len(records))
	for i, s := range records {
		want[i] = s
		before := *s
		switch i % 4 {
		case 0: // nothing is there
			continue
		case 1: // its own try before
		case 2: // a tombstone that has expired and is still there
			before.Doc, before.SiteIDs, before.Deleted = nil, nil, true
			before.Revision = start.Add(-commerce.TombstoneAge)
			want[i] = nil
		case 3: // another writer's
			before.Revision--
			want[i] = &before
		}
		wrong[i] = fault.ErrChanged
		must(t, table.PutRecord(t.Context(), nil, &before))
	}
	for i, err := range table.CreateRecords(t.Context(), records) {
		if !errors.Is(err, wrong[i]) {
			t.Errorf("record %d %+v: got %v, want %v", i, records[i], err, wrong[i])
		}
	}
	checkStored(t, table, refsOf(records), want)
}

func TestARecordAloneReplacesOnlyAnExpiredTombstone(t *testing.T) {
	now := value.TimeOf(time.Now())
	table, org := tableAt(t, &now), value.NewID()
	next := manyRecords(org, 2, now)[1]
	for _, row := range []struct {
		name     string
		revision value.Time
		deleted  bool
		replaced bool
	}{
		{"a record", now - 1, false, false},
		{"a tombstone", now - 1, true, false},
		{"an expired tombstone", now.Add(-commerce.TombstoneAge), true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := *next
			before.ID, before.Revision, before.Deleted, before.Version = value.NewID(), row.revision, row.deleted, nil
			if row.deleted {
				before.Doc, before.SiteIDs = nil, nil
			}
			must(t, table.PutRecord(t.Context(), nil, &before))
			next.ID = before.ID
			err := table.CreateRecords(t.Context(), []*commerce.Stored{next})[0]
			if row.replaced {
				must(t, err)
				checkStored(t, table, refsOf([]*commerce.Stored{next}), []*commerce.Stored{next})
				return
			}
			var changed *dynamo.Changed
			if !errors.As(err, &changed) || !errors.Is(err, fault.ErrChanged) || cmp.Diff(&before, changed.Current) != "" {
				t.Errorf("got %v, want what is stored:\n%s", err, cmp.Diff(&before, changed.Current))
			}
		})
	}
}

// A record past what an item may hold is refused by the table, with nothing
// said of the others of its batch.
func TestRecordThatTheTableRefusesLeavesItsNeighboursAlone(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	records := manyRecords(org, 20, value.TimeOf(time.Now()))
	records[4].Doc = []byte(`"` + strings.Repeat("x", 500<<10) + `"`)
	want := append([]*commerce.Stored{}, records...)
	want[4] = nil
	for i, err := range table.CreateRecords(t.Context(), records) {
		if (err != nil) != (i == 4) || fault.Is(err, fault.Unavailable) {
			t.Errorf("record %d: %v, want an error of the fifth alone that no repetition mends", i, err)
		}
	}
	checkStored(t, table, refsOf(records), want)
}

func TestRecordThatCannotBeDecodedLeavesItsNeighboursAlone(t *testing.T) {
	client, name := dynamotest.Client(t)
	table := dynamo.New(client, name, time.Now)
	records := manyRecords(value.NewID(), 3, value.TimeOf(time.Now()))
	records[1].Doc = nil
	table.CreateRecords(t.Context(), records)
	for i, got := range table.ReadRecords(t.Context(), refsOf(records)) {
		if (got.Err != nil) != (i == 1) {
			t.Errorf("record %d: %v, want an error of the second alone", i, got.Err)
		}
	}
}
