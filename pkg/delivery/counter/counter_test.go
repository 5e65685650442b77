package counter_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/counter"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// attempted records the outcome of a delivery's attempt as the worker does.
func attempted(t *testing.T, s *servicetest.Service, d *webhook.Delivery, reason string) *webhook.Delivery {
	t.Helper()
	o := webhook.Outcome{Attempt: webhook.Attempt{At: s.Now().Add(-7 * time.Millisecond), DurationMs: 7}, Result: webhook.AttemptSucceeded}
	if reason != "" {
		o.Attempt.Error, o.Result = &reason, webhook.AttemptFailed
	}
	next := d.Record(o, "m", webhook.MaxRetryCount, 0, s.Now())
	if d.Probe && next.Pending() {
		next = next.Hold(webhook.HeldCircuitOpen, s.Now())
	}
	next.Unsettled = s.StoredEndpoint(t, d.EndpointID).Unsettled()
	if _, err := s.Table.PutDelivery(t.Context(), d, next); err != nil {
		t.Fatal(err)
	}
	return next
}

// delivered stores deliveries for the endpoint, records a success of each, and
// returns what the stream got of it.
func delivered(t *testing.T, s *servicetest.Service, e *webhook.Endpoint, n int) []events.DynamoDBEventRecord {
	t.Helper()
	for _, d := range s.Deliveries(t, e, n, nil) {
		attempted(t, s, d, "")
	}
	return s.StreamRecords(t, dynamo.StreamEvent)
}

func handle(t *testing.T, c *counter.Counter, shard string, records []events.DynamoDBEventRecord) (failed bool) {
	t.Helper()
	var batch events.DynamoDBTimeWindowEvent
	batch.Records, batch.ShardID = records, shard
	return len(c.Handle(t.Context(), batch)) > 0
}

// sent notes the messages that are sent.
type sent struct{ moves []queue.Move }

func (s *sent) Move(_ context.Context, _ webhook.Lane, moves ...queue.Move) error {
	s.moves = append(s.moves, moves...)
	return nil
}

func newCounter(s *servicetest.Service, store counter.Store) *counter.Counter {
	return counter.New(store, &sent{}, s.Time, slog.New(slog.DiscardHandler))
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
	c := newCounter(s, s.Table)
	for from := 0; from < len(records); from += 7 { // each batch begins before the end of the last
		if handle(t, c, "a", records[max(0, from-5):min(len(records), from+7)]) {
			t.Fatal("a batch failed")
		}
	}
	handle(t, c, "a", records)
	handle(t, newCounter(s, s.Table), "a", records) // of a process that remembers nothing
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

// DynamoDB divides the items of one partition key between two shards, by their sort
// keys, while outcomes are written. Each shard has a reader of its own, none keeps
// step with another, and their batches come again when a write fails, when its answer
// is lost or when a process dies.
func TestCountsAreExactWhenAPartitionIsDivided(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	shards := map[string][]events.DynamoDBEventRecord{"whole": delivered(t, s, e, 60)}
	for _, r := range delivered(t, s, e, 120) {
		shard := "lower"
		if strings.Compare(r.Change.Keys["SK"].String(), "8") >= 0 {
			shard = "upper"
		}
		shards[shard] = append(shards[shard], r)
	}
	read := func(shard string) {
		c := newCounter(s, unreliable{s.Table})
		for some := range slices.Chunk(shards[shard], 9) {
			for try := 0; handle(t, c, shard, some); try++ {
				if try == 50 {
					t.Error("a batch fails without end")
					return
				}
				if try%3 == 2 { // another process
					c = newCounter(s, unreliable{s.Table})
				}
			}
		}
	}
	read("whole") // a shard is read to its end before those that follow it
	var group sync.WaitGroup
	for _, shard := range []string{"lower", "upper"} {
		group.Go(func() { read(shard) })
	}
	group.Wait()
	wantCount(t, s, e, 180)
}

// unreliable fails at every fourth write, before or after it is made.
type unreliable struct{ counter.Store }

func (u unreliable) PutTally(ctx context.Context, d *webhook.Delivery, next *webhook.Tally, finished webhook.Finished) (*webhook.Tally, bool, error) {
	failure := fault.Busy(errors.New("throttled"))
	if rand.N(8) == 0 {
		return nil, false, failure
	}
	current, done, err := u.Store.PutTally(ctx, d, next, finished)
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
	c := newCounter(s, s.Table)
	handle(t, c, "a", name(delivered(t, s, e, 3), "first", "9"))
	handle(t, c, "a", name(delivered(t, s, e, 4), "second", "1"))
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
		if handle(t, newCounter(s, s.Table), "a", records) {
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
	test := s.Deliveries(t, e, 1, func(_ int, d *webhook.Delivery) { d.Test = true })[0]
	attempted(t, s, test, "no")
	records := append(s.StreamRecords(t, dynamo.StreamEvent), events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: "1", NewImage: map[string]events.DynamoDBAttributeValue{"t": events.NewStringAttribute("evt")},
	}})
	if handle(t, newCounter(s, s.Table), "a", records) {
		t.Error("the batch failed")
	}
	wantCount(t, s, e, 0)
}

// Endpoints that are being set up are probed soon, by one of the deliveries that
// failed, while the wait is shorter than the sweeper's. A batch that comes again
// makes no other probe, and doubles no wait a second time.
func TestAnEndpointThatNeverSucceededIsProbedSoon(t *testing.T) {
	for name, waits := range map[string][]time.Duration{
		"down for long":            {10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second},
		"repaired within a minute": {10 * time.Second, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := servicetest.New(t)
			e := s.Endpoint(t, "*")
			q := &sent{}
			count := func() *webhook.Circuit {
				records := s.StreamRecords(t, dynamo.StreamEvent)
				for range 2 {
					if handle(t, counter.New(s.Table, q, s.Time, slog.New(slog.DiscardHandler)), "a", records) {
						t.Fatal("the batch failed")
					}
				}
				return s.StoredEndpoint(t, e.ID).Circuit
			}
			for _, d := range s.Deliveries(t, e, 11, nil) {
				s.Pass(6 * time.Second)
				attempted(t, s, d, "no")
			}
			for i, wait := range waits {
				c := count()
				if !c.Open() || c.Interval() != wait || c.ProbeAt != s.At(wait) {
					t.Fatalf("circuit %+v, want a probe in %s", c, wait)
				}
				if wait >= time.Minute {
					if len(q.moves) != i {
						t.Errorf("%d messages, want the sweeper to probe", len(q.moves))
					}
					return
				}
				if len(q.moves) != i+1 || q.moves[i].Delay.Round(time.Second) != wait {
					t.Fatalf("sent %+v, want one message more, in %s", q.moves, wait)
				}
				probe := s.StoredDelivery(t, q.moves[i].Ref.DeliveryID)
				if !probe.Probe || *probe.NextAttemptAt != c.ProbeAt || probe.DueAt == nil || probe.MessageID != q.moves[i].MessageID {
					t.Fatalf("delivery %+v, message %+v; want it to be the probe by its message", probe, q.moves[i])
				}
				s.Pass(wait + time.Second)
				reason := "no"
				if len(waits) == 2 && i == 1 {
					reason = ""
				}
				attempted(t, s, probe, reason)
			}
			if c := count(); c.Open() || c == nil {
				t.Errorf("circuit %+v, want it draining", c)
			}
		})
	}
}

// A process that dies between the count and what follows from it repeats the batch.
func TestTheRoutingFollowsFromABatchThatIsCountedAlready(t *testing.T) {
	s := servicetest.New(t)
	e := s.Endpoint(t, "*")
	for _, d := range s.Deliveries(t, e, 50, nil) {
		attempted(t, s, d, "no")
	}
	records := s.StreamRecords(t, dynamo.StreamEvent)
	if !handle(t, newCounter(s, stuck{s.Table}), "a", records) {
		t.Fatal("the batch did not fail")
	}
	if found, err := s.Table.Counters(t.Context(), s.Org, e.ID); err != nil || found[e.ID].FailureCount != 50 {
		t.Fatalf("counted %+v, %v, want 50 failures", found[e.ID], err)
	}
	if handle(t, newCounter(s, s.Table), "a", records) || !s.StoredEndpoint(t, e.ID).Circuit.Open() {
		t.Errorf("endpoint %+v, want its circuit open", s.StoredEndpoint(t, e.ID))
	}
	var other value.ID
	if found, err := s.Table.Tally(t.Context(), s.Organization(t).Org, e.ID); err != nil || found.Revision != 0 {
		t.Errorf("another organization: got %+v, %v", found, err)
	}
	if found, err := s.Table.Tally(t.Context(), s.Org, other); err != nil || found.Revision != 0 {
		t.Errorf("no endpoint: got %+v, %v", found, err)
	}
}

// stuck sets no routing.
type stuck struct{ counter.Store }

func (stuck) SetRouting(context.Context, value.ID, value.ID, webhook.Routing, webhook.Routing) (bool, error) {
	return false, fault.Busy(errors.New("throttled"))
}

// malformed has an endpoint whose tally cannot be decoded.
type malformed struct {
	counter.Store
	endpoint value.ID
}

func (m malformed) Tally(ctx context.Context, org, endpoint value.ID) (*webhook.Tally, error) {
	if endpoint == m.endpoint {
		return nil, errors.New("the tally of x: malformed")
	}
	return m.Store.Tally(ctx, org, endpoint)
}

func TestATallyThatCannotBeReadStopsNoOther(t *testing.T) {
	s := servicetest.New(t)
	bad, good := s.Endpoint(t, "*"), s.Endpoint(t, "*")
	records := append(delivered(t, s, bad, 1), delivered(t, s, good, 1)...)
	c := newCounter(s, malformed{s.Table, bad.ID})
	if handle(t, c, "a", records) {
		t.Error("the batch failed, and with it all others of the shard")
	}
	wantCount(t, s, good, 1)
}

// panicking panics for an endpoint.
type panicking struct {
	counter.Store
	endpoint value.ID
}

func (m panicking) Tally(ctx context.Context, org, endpoint value.ID) (*webhook.Tally, error) {
	if endpoint == m.endpoint {
		panic("bad data")
	}
	return m.Store.Tally(ctx, org, endpoint)
}

func TestAPanicStopsNoOther(t *testing.T) {
	s := servicetest.New(t)
	bad, good := s.Endpoint(t, "*"), s.Endpoint(t, "*")
	records := append(delivered(t, s, bad, 1), delivered(t, s, good, 1)...)
	if handle(t, newCounter(s, panicking{s.Table, bad.ID}), "a", records) {
		t.Error("the batch failed")
	}
	wantCount(t, s, good, 1)
}
