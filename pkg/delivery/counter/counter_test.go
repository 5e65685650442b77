package counter_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/counter"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// delivered stores deliveries for the endpoint, records a success of each for
// the stream to count, and returns what the stream got of it.
func delivered(t *testing.T, s *servicetest.Service, e *webhook.Endpoint, n int) []events.DynamoDBEventRecord {
	t.Helper()
	for _, d := range s.Deliveries(t, e, n, nil) {
		o := webhook.Outcome{Attempt: webhook.Attempt{At: s.Now(), DurationMs: 7}, Result: webhook.AttemptSucceeded}
		next := d.Record(o, "", 0, 0, s.Now())
		if conflict, err := s.Table.RecordEach(t.Context(), []webhook.DeliveryChange{{Previous: d, Next: next}}); conflict != nil || err != nil {
			t.Fatalf("RecordEach: %+v, %v", conflict, err)
		}
	}
	return s.StreamRecords(t, dynamo.StreamEvent)
}

func handle(t *testing.T, c *counter.Counter, records []events.DynamoDBEventRecord) (failed bool) {
	t.Helper()
	answer, err := c.Handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return len(answer.BatchItemFailures) > 0
}

func newCounter(store counter.Store) *counter.Counter {
	return counter.New(store, slog.New(slog.DiscardHandler))
}

func wantCount(t *testing.T, s *servicetest.Service, e *webhook.Endpoint, want int64) {
	t.Helper()
	found, err := s.Table.Counters(t.Context(), s.Org, e.ID)
	if got := found[e.ID]; err != nil || got.SuccessCount != want || got.FailureCount != 0 {
		t.Errorf("counted %+v, %v, want %d successes", got, err, want)
	}
}

func TestAnAttemptCountsOnceHoweverOftenItsRecordComes(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	records := delivered(t, s, e, 40)
	c := newCounter(s.Table)
	for from := 0; from < len(records); from += 7 { // each batch begins before the end of the last
		if handle(t, c, records[max(0, from-5):min(len(records), from+7)]) {
			t.Fatal("a batch failed")
		}
	}
	handle(t, c, records)
	handle(t, newCounter(s.Table), records) // of a process that remembers nothing
	wantCount(t, s, e, 40)
	day, err := s.Table.Usage(t.Context(), s.Org, s.App, webhook.StatsDay.Start(s.Now()), s.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range day {
		if u.Events != 40 || u.Delivered != 40 {
			t.Errorf("the day has %+v, want 40 events delivered", u)
		}
	}
}

// Each shard of a stream has a reader of its own, whose batches come again when
// a write fails or its answer is lost.
func TestReadersOfSeveralShardsCountTheSameEndpoint(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	shards := make([][]events.DynamoDBEventRecord, 4)
	for _, r := range delivered(t, s, e, 80) { // by partition key, as a table is divided
		key := r.Change.Keys["PK"].String()
		i := int(key[len(key)-1]) % len(shards)
		shards[i] = append(shards[i], r)
	}
	var group sync.WaitGroup
	for _, records := range shards {
		group.Go(func() {
			c := newCounter(unreliable{s.Table})
			for some := range slices.Chunk(records, 9) {
				for try := 0; handle(t, c, some); try++ {
					if try == 50 {
						t.Error("a batch fails without end")
						return
					}
				}
			}
		})
	}
	group.Wait()
	wantCount(t, s, e, 80)
}

// unreliable fails at every fourth write, before or after it is made.
type unreliable struct{ counter.Store }

func (u unreliable) PutStreamCount(ctx context.Context, w *webhook.CounterShardWrite, after webhook.StreamPosition) (*webhook.StreamCount, bool, error) {
	failure := fault.Busy(errors.New("throttled"))
	if rand.N(8) == 0 {
		return nil, false, failure
	}
	current, done, err := u.Store.PutStreamCount(ctx, w, after)
	if rand.N(8) == 0 {
		return nil, false, failure
	}
	return current, done, err
}

func TestAnotherStreamBeginsAnew(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	name := func(records []events.DynamoDBEventRecord, stream, first string) []events.DynamoDBEventRecord {
		for i := range records {
			records[i].EventSourceArn = "arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/" + stream
			records[i].Change.SequenceNumber = first + records[i].Change.SequenceNumber
		}
		return records
	}
	c := newCounter(s.Table)
	handle(t, c, name(delivered(t, s, e, 3), "first", "9"))
	handle(t, c, name(delivered(t, s, e, 4), "second", "1"))
	wantCount(t, s, e, 7)
}

func TestAttemptsCountInTheHourInWhichTheyWereRecorded(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	first := webhook.StatsHour.Start(s.Now())
	var records []events.DynamoDBEventRecord
	for range 3 {
		records = append(records, delivered(t, s, e, 5)...)
		s.Pass(time.Hour)
	}
	for range 2 {
		if handle(t, newCounter(s.Table), records) {
			t.Fatal("the batch failed")
		}
	}
	hours, err := s.Table.Stats(t.Context(), s.Org, e.ID, first, first.Add(4*time.Hour))
	if err != nil || len(hours) != 3 {
		t.Fatalf("got %d hours, %v, want 3", len(hours), err)
	}
	for i, h := range hours {
		if h.Start != first.Add(time.Duration(i)*time.Hour) || h.SuccessCount != 5 {
			t.Errorf("hour %d: %d successes from %s, want 5 an hour", i, h.SuccessCount, h.Start)
		}
	}
}

func TestOtherChangesAreNotCounted(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	for _, d := range s.Deliveries(t, e, 3, nil) {
		if _, err := s.Table.PutDelivery(t.Context(), d, d.Cancel(s.Now())); err != nil {
			t.Fatal(err)
		}
	}
	foreign := s.Organization(t)
	records := append(s.StreamRecords(t, dynamo.StreamEvent), events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: "1", NewImage: map[string]events.DynamoDBAttributeValue{"t": events.NewStringAttribute("evt"), "uncounted": events.NewBooleanAttribute(true)},
	}})
	if handle(t, newCounter(s.Table), records) {
		t.Error("the batch failed")
	}
	wantCount(t, s, e, 0)
	if found, err := foreign.Table.StreamCount(t.Context(), foreign.Org, e.ID); err != nil || found.Revision != 0 {
		t.Errorf("another organization: got %+v, %v", found, err)
	}
	var none value.ID
	if found, err := s.Table.StreamCount(t.Context(), s.Org, none); err != nil || found.Revision != 0 {
		t.Errorf("no endpoint: got %+v, %v", found, err)
	}
}

func TestItIsNotedHowFarTheStreamIsCounted(t *testing.T) {
	s := servicetest.New(t)
	records := delivered(t, s, s.Endpoint(t, "*"), 1)
	c := newCounter(s.Table)
	begun := s.Now()
	for _, step := range []struct{ at, want time.Duration }{
		{0, 0},
		{webhook.CountedEvery - time.Second, 0}, // soon enough
		{webhook.CountedEvery, webhook.CountedEvery},
		{3 * time.Second, webhook.CountedEvery}, // a shard that lags
	} {
		records[len(records)-1].Change.ApproximateCreationDateTime.Time = begun.Add(step.at).Std()
		handle(t, c, records)
		if got, err := s.Table.Counted(t.Context()); err != nil || got != begun.Add(step.want) {
			t.Errorf("after records of %s: noted %s, %v, want %s", step.at, got, err, begun.Add(step.want))
		}
	}
}
