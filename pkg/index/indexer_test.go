package index_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/ops"
)

// puts watches what a client puts, by the type of the item.
type puts struct {
	mu    sync.Mutex
	of    map[string]int
	fails string // the type that cannot be put
}

func (p *puts) watch(client *dynamodb.Client) *dynamodb.Client {
	p.of = map[string]int{}
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("puts", p.put), middleware.Before)
		})
	})
}

func (p *puts) put(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	if put, ok := in.Parameters.(*dynamodb.PutItemInput); ok {
		itemType := put.Item["t"].(*types.AttributeValueMemberS).Value
		if itemType == p.fails {
			return middleware.InitializeOutput{}, middleware.Metadata{}, errors.New("gone")
		}
		p.mu.Lock()
		p.of[itemType]++
		p.mu.Unlock()
	}
	return next.HandleInitialize(ctx, in)
}

func (w *harness) organizations(t *testing.T) []value.ID {
	t.Helper()
	found, err := w.table.Organizations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (w *harness) tailEnd(t *testing.T, org value.ID) uint64 {
	t.Helper()
	end, err := w.table.TailEnd(t.Context(), org, w.list.Name)
	if err != nil {
		t.Fatal(err)
	}
	return end.Sequence
}

func TestOrganizationIsRegisteredBeforeItsFirstTailEntry(t *testing.T) {
	for _, row := range []struct {
		fails      string // the put at which the writer dies
		registered int
	}{{"org", 0}, {"job", 1}, {"tail", 1}} {
		t.Run(row.fails, func(t *testing.T) {
			w := newHarness(t)
			w.put(value.NewID(), thing{size: 1, month: 1})
			batch := events.DynamoDBEvent{Records: w.stream}
			dying := &puts{fails: row.fails}
			table := dynamo.New(dying.watch(w.client), w.table.Name(), w.clock)
			writer := indexer.New(table, w.decode, &parked{}, w, slog.New(slog.DiscardHandler))
			response, err := writer.Handle(t.Context(), batch)
			if err != nil || len(response.BatchItemFailures) != 1 {
				t.Fatalf("died at %s: got %+v, %v; want a failed batch", row.fails, response, err)
			}
			if got, end := w.organizations(t), w.tailEnd(t, w.org); len(got) != row.registered || end != 0 {
				t.Errorf("died at %s: registered %v and %d entries, want %d and none", row.fails, got, end, row.registered)
			}
			w.handle(t, w.indexer(&parked{}), w.stream) // the stream brings it again
			if got, end := w.organizations(t), w.tailEnd(t, w.org); !slices.Equal(got, []value.ID{w.org}) || end != 1 {
				t.Errorf("died at %s, then tried again: registered %v and %d entries, want %s and one", row.fails, got, end, w.org)
			}
		})
	}
}

func TestOrganizationsAreRegisteredOncePerListAndWeek(t *testing.T) {
	w := newHarness(t)
	watched := &puts{}
	table := dynamo.New(watched.watch(w.client), w.table.Name(), w.clock)
	orgs := []value.ID{value.NewRandomID(), value.NewRandomID(), value.NewRandomID()}
	for i := range orgs {
		orgs[i][12], orgs[i][13] = 0, 0 // their weeks turn on a Sunday, 23 hours after the harness begins or later
	}
	other := *w.list
	other.Name = "others"
	n := 0
	writer := indexer.New(table, func(ctx context.Context, r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		found, err := w.decode(ctx, r)
		for i := range found {
			found[i].Org = orgs[n%len(orgs)]
			if n%2 == 0 {
				found[i].List = &other
			}
		}
		n++
		return found, err
	}, &parked{}, w, slog.New(slog.DiscardHandler))
	for range 12 {
		w.put(value.NewID(), thing{size: 1, month: 1})
	}
	slices.SortFunc(orgs, func(a, b value.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, row := range []struct {
		after time.Duration
		want  int // registrations by then
	}{{0, 6}, {time.Minute, 6}, {7 * 24 * time.Hour, 12}, {time.Hour, 12}} {
		w.advance(row.after)
		w.handle(t, writer, w.stream)
		if got := watched.of["org"]; got != row.want {
			t.Errorf("%s later: %d registrations by then, want %d", row.after, got, row.want)
		}
		if got := w.organizations(t); !slices.Equal(got, orgs) {
			t.Errorf("%s later: registered %v, want %v", row.after, got, orgs)
		}
	}
}

// slowTails take a second for each entry, and refuse those of one organization.
type slowTails struct {
	storage
	refused value.ID
}

func (s *slowTails) AppendTail(ctx context.Context, org value.ID, list string, entry func(index.Position) ([]byte, error)) (index.Position, error) {
	time.Sleep(time.Second)
	if org == s.refused {
		return index.Position{}, errors.New("busy")
	}
	return s.storage.AppendTail(ctx, org, list, entry)
}

// Each of 33 organizations has a thing that changes twice in a batch.
func TestListsAreWrittenSixteenAtATimeWithOneChangeOfADocument(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *harness) {
		w := newMemoryHarness()
		tails, owners := &slowTails{storage: w.storage}, map[value.ID]value.ID{}
		for range 33 {
			id, org := value.NewID(), value.NewRandomID()
			owners[id], tails.refused = org, org
			w.put(id, thing{size: 1, month: 1})
			w.put(id, thing{size: 2, month: 1})
		}
		writer := indexer.New(tails, func(ctx context.Context, r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
			found, err := w.decode(ctx, r)
			for i := range found {
				found[i].Org = owners[value.MustID(r.Change.NewImage["id"].String())]
			}
			return found, err
		}, &parked{}, w, slog.New(slog.DiscardHandler))
		response, err := writer.Handle(t.Context(), events.DynamoDBEvent{Records: w.stream})
		if err != nil || len(response.BatchItemFailures) != 1 || response.BatchItemFailures[0].ItemIdentifier != "0" {
			t.Errorf("a list is refused: got %+v, %v; want a failure of sequence 0", response, err)
		}
		tails.refused = value.ID{}
		w.storage.(*memory).memoryContent = newMemory(w.clock).memoryContent
		start := time.Now()
		w.handle(t, writer, w.stream)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("33 lists took %s, want thrice the time of one", took)
		}
		for id, org := range owners {
			var found []int64
			err := index.Index{Key: index.Key{Org: org, List: w.list}, Reader: w.storage}.Tail(t.Context(), 0, true, func(_ uint64, e index.TailEntry) error {
				for _, d := range e.Documents() {
					found = append(found, d.Revision)
				}
				return nil
			})
			if want := []int64{w.things[id].revision}; err != nil || !slices.Equal(found, want) {
				t.Errorf("the list has the revisions %d, %v; want the later one, %d", found, err, want)
			}
		}
	})
}

// A rebuild of an organization nothing of which was indexed before begins its
// tail without the writer.
func TestOrganizationOfAForeignTailIsRegisteredInAWeek(t *testing.T) {
	w := newHarness(t)
	w.put(value.NewID(), thing{size: 1, month: 1})
	if err := ops.Rebuild(t.Context(), w.storage, w.compactor(), index.Key{Org: w.org, List: w.list}, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if end := w.tailEnd(t, w.org); end == 0 {
		t.Fatal("the rebuild left the tail empty")
	}
	w.advance(7 * 24 * time.Hour)
	w.put(value.NewID(), thing{size: 1, month: 1})
	w.handle(t, w.indexer(&parked{}), w.stream)
	if got := w.organizations(t); !slices.Equal(got, []value.ID{w.org}) {
		t.Errorf("registered %v, want %s", got, w.org)
	}
}
