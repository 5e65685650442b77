package records_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// shelf is records in memory instead of the table, with views that show them
// at once: for what depends on many or large records only.
type shelf struct {
	stored map[value.ID]*commerce.Stored
	views  map[string]*columnar.View
	fail   error      // of every read
	units  int        // that a list takes
	read   []value.ID // by RecordsSince
}

func newShelf() *shelf {
	s := &shelf{stored: map[value.ID]*commerce.Stored{}, views: map[string]*columnar.View{}}
	for _, kind := range commerce.Kinds() {
		s.views[kind.Plural()] = columnar.NewView(commerce.ListOf(kind).Schema)
	}
	s.views["deletions"] = columnar.NewView(commerce.DeletionList().Schema)
	return s
}

// put adds records of ours; ids are not shared between kinds here.
func (s *shelf) put(t testing.TB, kind commerce.Kind, records ...map[string]any) {
	t.Helper()
	documents := make([]columnar.Document, 0, len(records))
	for _, record := range records {
		doc, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := commerce.Apply(nil, commerce.Change{Kind: kind, Op: commerce.OpPut, OrganizationID: ours, Record: doc}, value.TimeOf(present))
		if err != nil {
			t.Fatal(err)
		}
		document, err := commerce.Document(stored, stored.Revision, commerce.Fields{})
		if err != nil {
			t.Fatal(err)
		}
		s.stored[stored.ID] = stored
		documents = append(documents, document)
	}
	s.views[kind.Plural()].Apply(documents)
}

// enlarge replaces a part of a stored document, without the checks and the
// time that a large record takes on its way in.
func (s *shelf) enlarge(id value.ID, part, by string) {
	stored := s.stored[id]
	stored.Doc = bytes.Replace(stored.Doc, []byte(part), []byte(by), 1)
}

func (s *shelf) Record(_ context.Context, _ value.ID, _ commerce.Kind, id value.ID) (*commerce.Stored, error) {
	return s.stored[id], s.fail
}

func (s *shelf) RecordsSince(_ context.Context, _ value.ID, _ commerce.Kind, least map[value.ID]value.Time) (map[value.ID]*commerce.Stored, error) {
	found := make(map[value.ID]*commerce.Stored, len(least))
	for id := range least {
		s.read = append(s.read, id)
		found[id] = s.stored[id]
	}
	return found, s.fail
}

func (s *shelf) Records(_ context.Context, _ value.ID, _ commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error) {
	found := make(map[value.ID]*commerce.Stored, len(ids))
	for _, id := range ids {
		found[id] = s.stored[id]
	}
	return found, s.fail
}

// NearRecords finds every second one.
func (s *shelf) NearRecords(_ context.Context, _ value.ID, _ commerce.Kind, ids []value.ID, _ int) (map[value.ID]*commerce.Stored, error) {
	found := map[value.ID]*commerce.Stored{}
	for pair := range slices.Chunk(ids, 2) {
		found[pair[0]] = s.stored[pair[0]]
	}
	return found, s.fail
}

func (s *shelf) Activity(context.Context, value.ID) (value.Time, error) { return 0, s.fail }

func (s *shelf) BeginWait(context.Context, value.ID, value.ID, int, value.Time, value.Time) (bool, error) {
	return true, s.fail
}

func (s *shelf) EndWait(context.Context, value.ID, value.ID) error { return s.fail }

func (s *shelf) Query(_ context.Context, _ value.ID, list *index.List, q columnar.Query, _ bool) (lists.Answer, error) {
	return lists.Answer{Result: s.views[list.Name].Query(q), SyncFrom: value.TimeOf(present) + 1}, nil
}

func (s *shelf) QueryWeighed(
	ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool, admit func(units int) error,
) (lists.Answer, error) {
	if err := admit(s.units); err != nil {
		return lists.Answer{}, err
	}
	return s.Query(ctx, org, list, q, now)
}

// serve starts an instance of the read API over the shelf.
func (s *shelf) serve() http.Handler { return s.serveAt(func() time.Time { return present }, 0) }

func (s *shelf) serveAt(clock func() time.Time, cacheBytes int) http.Handler {
	return server(records.Operations(s, s, records.Config{
		Clock: clock, Lists: index.NewLists(nil, 1), CacheBytes: cacheBytes,
	}), clock)
}
