package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// readPages reads every shard in pages of a limit and returns what is there,
// in the order of ids within a shard, and how many pages that took.
func readPages[T any](t *testing.T, read func(shard int, after string) ([]T, string, error), limit int) (all []T, pages int) {
	t.Helper()
	for shard := range dynamo.Shards {
		for after := ""; ; {
			page, next, err := read(shard, after)
			if err != nil {
				t.Fatalf("shard %d after %q: %v", shard, after, err)
			}
			if len(page) > limit {
				t.Errorf("shard %d after %q: %d at a time, want at most %d", shard, after, len(page), limit)
			}
			all, pages = append(all, page...), pages+1
			if next == "" {
				break
			}
			if next <= after {
				t.Fatalf("shard %d: the page after %q goes on at %q", shard, after, next)
			}
			after = next
		}
	}
	return all, pages
}

func TestPagesOfRecordsHoldEveryRecordAndTombstoneOnce(t *testing.T) {
	now := value.TimeOf(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	table, org, other := tableAt(t, &now), value.NewID(), value.NewID()
	start := now
	want := map[value.ID]*commerce.Stored{}
	put := func(s *commerce.Stored) {
		must(t, table.PutRecord(t.Context(), nil, s))
	}
	for i := range 120 {
		s := &commerce.Stored{
			Kind: commerce.KindProduct, ID: value.NewRandomID(), OrganizationID: org, Revision: now, Doc: fmt.Appendf(nil, `{"n":%d}`, i),
		}
		if i%4 == 0 {
			s.Doc, s.Deleted = nil, true
		}
		if i%8 == 0 {
			s.Revision = now.Add(time.Hour)
		}
		put(s)
		if !s.Deleted || s.Revision > now {
			want[s.ID] = s
		}
	}
	put(&commerce.Stored{Kind: commerce.KindProduct, ID: value.NewID(), OrganizationID: other, Revision: now, Doc: []byte(`{}`)})
	put(&commerce.Stored{Kind: commerce.KindOrder, ID: value.NewID(), OrganizationID: org, Revision: now, Doc: []byte(`{}`)})

	now = start.Add(commerce.TombstoneAge) // the older tombstones have expired
	for _, limit := range []int{1, 7, 1000} {
		got, pages := readPages(t, func(shard int, after string) ([]*commerce.Stored, string, error) {
			return table.RecordsPage(t.Context(), org, commerce.KindProduct, shard, after, limit)
		}, limit)
		if len(got) != len(want) || limit == 1000 && pages != dynamo.Shards {
			t.Errorf("limit %d: %d records on %d pages, want %d", limit, len(got), pages, len(want))
		}
		for _, s := range got {
			if cmp.Diff(want[s.ID], s) != "" {
				t.Errorf("limit %d, record %s (-want +got):\n%s", limit, s.ID, cmp.Diff(want[s.ID], s))
			}
		}
	}
	got, _ := readPages(t, func(shard int, after string) ([]*commerce.Stored, string, error) {
		return table.RecordsPage(t.Context(), other, commerce.KindProduct, shard, after, 10)
	}, 10)
	if len(got) != 1 {
		t.Errorf("another organization reads %d records, want its own one", len(got))
	}
}

// A query answers at most 1 MB: large records come on more pages than the
// limit asks for.
func TestPagesOfLargeRecordsHoldThemAll(t *testing.T) {
	now := value.TimeOf(time.Now())
	table, org := tableAt(t, &now), value.NewID()
	doc := []byte(`"` + strings.Repeat("x", 300<<10) + `"`)
	var ids []string
	for range 40 {
		s := &commerce.Stored{Kind: commerce.KindOrder, ID: value.NewRandomID(), OrganizationID: org, Revision: now, Doc: doc}
		must(t, table.PutRecord(t.Context(), nil, s))
		ids = append(ids, s.ID.String())
	}
	got, pages := readPages(t, func(shard int, after string) ([]*commerce.Stored, string, error) {
		return table.RecordsPage(t.Context(), org, commerce.KindOrder, shard, after, 1000)
	}, 1000)
	var found []string
	for _, s := range got {
		found = append(found, s.ID.String())
	}
	slices.Sort(ids)
	slices.Sort(found)
	if !slices.Equal(found, ids) || pages <= dynamo.Shards {
		t.Errorf("%d records on %d pages, want %d on more than %d", len(found), pages, len(ids), dynamo.Shards)
	}
}

// TestRecordsSinceReadsAgainOnlyWhatIsBehind asks a replica that lacks the last
// writes.
func TestRecordsSinceReadsAgainOnlyWhatIsBehind(t *testing.T) {
	client, name := dynamotest.Client(t)
	r := newReplica(client, name)
	now := value.TimeOf(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	table := dynamo.New(r.client, name, now.Std)
	org, least := value.NewID(), map[value.ID]value.Time{}
	record := func(id value.ID, revision value.Time) *commerce.Stored {
		return &commerce.Stored{Kind: commerce.KindProduct, ID: id, OrganizationID: org, Revision: revision, Doc: fmt.Appendf(nil, `{"at":%d}`, revision)}
	}
	put := func(previous, next *commerce.Stored) {
		t.Helper()
		must(t, table.PutRecord(t.Context(), previous, next))
	}
	same, newer, changed, created, removed, gone := value.NewID(), value.NewID(), value.NewID(), value.NewID(), value.NewID(), value.NewID()
	put(nil, record(same, now))
	put(nil, record(newer, now+5))
	put(nil, record(changed, now))
	put(nil, record(removed, now))
	r.catchUp(t)
	put(record(changed, now), record(changed, now+1))
	put(nil, record(created, now))
	tombstone := &commerce.Stored{Kind: commerce.KindProduct, ID: removed, OrganizationID: org, Revision: now + 1, Deleted: true}
	put(record(removed, now), tombstone)
	for id, revision := range map[value.ID]value.Time{same: now, newer: now, changed: now + 1, created: now, removed: now + 1, gone: now} {
		least[id] = revision
	}
	want := map[value.ID]*commerce.Stored{
		same: record(same, now), newer: record(newer, now+5), changed: record(changed, now+1), created: record(created, now), removed: tombstone,
	}
	got, err := table.RecordsSince(t.Context(), org, commerce.KindProduct, least)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("records (-want +got):\n%s%v", diff, err)
	}
	if r.strong != 4 { // changed, created, removed, gone
		t.Errorf("read strongly consistent: got %d, want the 4 that are behind or absent", r.strong)
	}
	if got, err := table.RecordsSince(t.Context(), value.NewID(), commerce.KindProduct, least); len(got) > 0 || err != nil {
		t.Errorf("another organization: got %v, %v, want nothing", got, err)
	}
}
