package ops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

var both = []string{ops.Dispatcher, ops.Indexer}

// parks puts records into the park for the consumers.
func (s state) parks(t *testing.T, consumers []string, records ...events.DynamoDBEventRecord) {
	t.Helper()
	for _, consumer := range consumers {
		for _, r := range records {
			if err := s.park().Park(t.Context(), consumer, r, errors.New("broken")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// replay replays at most limit records, 0 for all, and returns what it did.
func (s state) replay(ctx context.Context, table *dynamo.Table, consumer string, limit int) (replayed int, failures []string, err error) {
	r := &ops.Replay{
		Table: table, Consumer: consumer, Deliveries: s.Queues().Deliveries(),
		IndexJobs: queue.NewIndexJobs(s.Queues().Queue("IndexJobsQueue")),
		Failed:    func(record string, err error) { failures = append(failures, record+": "+err.Error()) },
	}
	replayed, _, err = r.Run(ctx, s.scan(servicetest.ParkQueue, limit))
	return replayed, failures, err
}

// replays fails unless everything is replayed, and so many records.
func (s state) replays(t *testing.T, want int) {
	t.Helper()
	if got, failures, err := s.replay(t.Context(), s.Table, "", 0); got != want || len(failures) > 0 || err != nil {
		t.Errorf("replayed %d, %v, %v; want %d", got, failures, err, want)
	}
}

// agrees fails unless lists and table do.
func (s state) agrees(t *testing.T) {
	t.Helper()
	if lines := s.differs(t, "products", "orders", "deletions"); len(lines) > 0 {
		t.Errorf("the lists differ: %q", lines)
	}
}

func TestReplayDoesWhatTheFunctionsWouldHaveDone(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	s.reindex(t)
	record := s.product(t, value.NewID(), "Tea")
	for range 2 { // a message that was not deleted in time is handed over once more
		s.parks(t, both, record...)
		s.replays(t, 2)
		s.agrees(t)
	}
	messages, deliveries := s.TakeMessages(t), s.AllDeliveries(t)
	if len(deliveries) != 1 {
		t.Fatalf("%d deliveries, want one", len(deliveries))
	}
	for n, sent := range messages {
		if m, err := webhook.ParseDeliveryMessage(sent.Body); err != nil || !m.Names(deliveries[0]) || n > 1 {
			t.Errorf("message %d to the worker is %s; want the delivery, at most twice", n, sent.Body)
		}
	}
	s.replays(t, 0)
}

func TestReplayKnowsWhatTheFunctionsPark(t *testing.T) {
	t.Parallel()
	s := newState(t)
	broken := s.product(t, value.NewID(), "Tea")
	broken[0].Change.NewImage["doc"] = events.NewStringAttribute("{broken")
	s.handle(t, broken)
	counts, err := ops.CountParked(t.Context(), s.scan(servicetest.ParkQueue, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, g := range counts.Sorted(func(a, b ops.ParkedGroup) int { return strings.Compare(a.Consumer, b.Consumer) }) {
		found[g.Group.Consumer] += g.Messages
	}
	if want := map[string]int{ops.Dispatcher: 1, ops.Indexer: 1}; !maps.Equal(found, want) {
		t.Errorf("parked: %v, want %v", found, want)
	}
}

func TestWhatFailsAgainStaysParkedAndItsNeighboursDoNot(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	s.reindex(t)
	broken := s.product(t, value.NewID(), "Cup")[0]
	s.remove(t, broken.Change.Keys)
	broken.Change.NewImage["doc"] = events.NewStringAttribute("{broken")
	name := broken.Change.Keys["PK"].String() + "/" + broken.Change.Keys["SK"].String()
	s.parks(t, both, broken, s.product(t, value.NewID(), "Tea")[0])
	s.parks(t, []string{"nobody"}, broken)
	s.send(t, servicetest.ParkQueue, "no record")
	for _, want := range []int{2, 0} {
		replayed, failures, err := s.replay(t.Context(), s.Table, "", 0)
		slices.Sort(failures)
		prefixes := []string{"dispatcher " + name, "indexer " + name, "message ", "message "}
		if err != nil || replayed != want || !slices.EqualFunc(failures, prefixes, strings.HasPrefix) {
			t.Errorf("replayed %d with the failures %q, %v; want %d, and %q", replayed, failures, err, want, prefixes)
		}
		if visible, hidden := s.waiting(t.Context(), t, servicetest.ParkQueue); visible != 4 || hidden != 0 {
			t.Errorf("%d records wait in the park, %d are hidden; want 4 and 0", visible, hidden)
		}
	}
	s.agrees(t)
	s.TakeMessages(t)
	if n := len(s.AllDeliveries(t)); n != 1 {
		t.Errorf("%d deliveries, want one of the good record", n)
	}
}

func TestARecordFailsWhileTheTableIsAwayAndIsReplayedLater(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	s.reindex(t)
	s.parks(t, both, s.product(t, value.NewID(), "Tea")...)
	away := dynamo.New(s.Client(), "another", time.Now)
	replayed, failures, err := s.replay(t.Context(), away, "", 0)
	if replayed != 0 || strings.Count(strings.Join(failures, ""), "ResourceNotFound") != 2 || err != nil {
		t.Errorf("another table: replayed %d, %q, %v; want both to fail with the table's reason", replayed, failures, err)
	}
	s.replays(t, 2)
	s.agrees(t)
}

// The index forgets within days what it removed, so that a parked change must
// not bring it back.
func TestAParkedChangeDoesNotBringBackWhatALaterOneRemoved(t *testing.T) {
	t.Parallel()
	put := func(name string) string {
		return `"kind":"product","op":"put","record":{"id":%q,"name":"` + name + `"}`
	}
	order := func(month int) string {
		return fmt.Sprintf(`"kind":"order","op":"put","record":{"id":%%q,"orderNumber":"1","currency":"EUR","createdAt":"2026-%02d-02T00:00:00Z"}`, month)
	}
	const remove = `"kind":"product","op":"delete","record":{"id":%q}`
	for name, changes := range map[string][3]string{
		"deleted":    {put("a"), put("b"), remove},
		"moved":      {order(1), order(2), order(3)},
		"moved back": {order(1), order(2), order(1)},
		"made again": {put("a"), remove, put("b")},
	} {
		for _, forgotten := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, forgotten by the index: %t", name, forgotten), func(t *testing.T) {
				t.Parallel()
				s, id := newState(t), value.NewID()
				s.apply(t, changes[0], id)
				s.reindex(t)
				late, last := s.apply(t, changes[1], id), s.apply(t, changes[2], id)
				s.parks(t, []string{ops.Indexer}, last...)
				s.replays(t, 1)
				if forgotten {
					s.reindex(t) // which makes the index without what was removed
				}
				s.parks(t, []string{ops.Indexer}, late...)
				s.replays(t, 1)
				s.agrees(t)
			})
		}
	}
}

func TestReplayTakesOnlyWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	s.reindex(t)
	for range 5 {
		s.parks(t, both, s.product(t, value.NewID(), "Tea")...)
	}
	for _, step := range []struct {
		consumer                         string
		limit, want, deliveries, waiting int
	}{
		{ops.Dispatcher, 2, 2, 2, 8},
		{ops.Dispatcher, 0, 3, 5, 5},
		{ops.Dispatcher, 0, 0, 5, 5},
		{"", 1, 1, 5, 4},
		{ops.Indexer, 0, 4, 5, 0},
	} {
		got, failures, err := s.replay(t.Context(), s.Table, step.consumer, step.limit)
		visible, hidden := s.waiting(t.Context(), t, servicetest.ParkQueue)
		s.TakeMessages(t)
		if n := len(s.AllDeliveries(t)); err != nil || len(failures) > 0 || got != step.want || n != step.deliveries || visible != step.waiting || hidden != 0 {
			t.Errorf("%+v: replayed %d, %v, %v; %d deliveries, %d wait and %d are hidden", step, got, failures, err, n, visible, hidden)
		}
	}
	s.agrees(t)
}

func TestAnInterruptedReplayGivesBackWhatItHasNotDone(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	const records = 200
	for range records {
		s.parks(t, []string{ops.Dispatcher}, s.product(t, value.NewID(), "Tea")...)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.replay(ctx, s.Table, ops.Dispatcher, 0)
		ended <- err
	}()
	for visible, hidden := records, 0; visible+hidden == records; {
		visible, hidden = s.waiting(t.Context(), t, servicetest.ParkQueue)
	}
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted replay ended with %v", err)
	}
	left, hidden := s.waiting(t.Context(), t, servicetest.ParkQueue)
	if hidden != 0 || left == 0 || left == records {
		t.Errorf("%d records wait and %d are hidden; want some of %d and none", left, hidden, records)
	}
	s.replays(t, left)
	s.TakeMessages(t)
	if n := len(s.AllDeliveries(t)); n != records {
		t.Errorf("%d deliveries of %d records", n, records)
	}
}

// dying fails every request after the first ones, as those of a killed process.
type dying struct {
	sqs.HTTPClient
	left *atomic.Int64
}

func (d dying) Do(r *http.Request) (*http.Response, error) {
	if d.left.Add(-1) < 0 {
		return nil, errors.New("killed")
	}
	return d.HTTPClient.Do(r)
}

func TestAReplayThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Endpoint(t, "*")
	const records = 150
	for range records {
		s.parks(t, []string{ops.Dispatcher}, s.product(t, value.NewID(), "Tea")...)
	}
	for _, requests := range []int64{5, 10, 15} {
		left := &atomic.Int64{}
		left.Store(requests)
		client := sqs.New(s.Queues().Client.Options(), func(o *sqs.Options) {
			o.HTTPClient, o.RetryMaxAttempts = dying{o.HTTPClient, left}, 1
		})
		r := &ops.Replay{Table: s.Table, Deliveries: s.Queues().Deliveries(), Failed: func(string, error) {}}
		if _, _, err := r.Run(t.Context(), ops.NewQueueScan(client, s.Queues().URL(servicetest.ParkQueue), 0)); err == nil {
			t.Errorf("killed after %d requests: no error", requests)
		}
		// What the command held comes back when its time is over.
		s.Queues().Release(t, servicetest.ParkQueue)
		visible, _ := s.waiting(t.Context(), t, servicetest.ParkQueue)
		s.TakeMessages(t)
		if done := len(s.AllDeliveries(t)); visible+done < records {
			t.Errorf("killed after %d requests: %d of %d records are in the park and %d were done", requests, visible, records, done)
		}
	}
	left, _ := s.waiting(t.Context(), t, servicetest.ParkQueue)
	s.replays(t, left)
	s.TakeMessages(t)
	if n := len(s.AllDeliveries(t)); n != records {
		t.Errorf("%d deliveries of %d records, the last %d by the last run", n, records, left)
	}
}
