package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/counter"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// harness is the service from a record's change to its receivers, in which days
// pass in moments: the handlers of dispatcher, counter, worker and sweeper as they are,
// a real table with its stream, and receivers over HTTP, on one clock that
// stands still while they work. The sweeper runs at every full minute, but for
// those in which no due mark is near, when it would find nothing.
type harness struct {
	*servicetest.Service
	t          *testing.T
	mail       *mailbox
	deaths     *deaths // of the handlers' processes
	topic      dispatcher.Topic
	workers    [2]*worker.Worker // instances, which take turns
	sweeper    *sweeper.Sweeper
	dispatcher *dispatcher.Dispatcher
	counter    *counter.Counter
	server     *httptest.Server
	start      time.Time
	grid       time.Time // of the next run of the sweeper
	orders     int
	batches    int
	sweeps     int

	mu        sync.Mutex
	receivers map[string]*party
	random    []float64 // handed out in turns
	turn      int
}

// party is a receiver.
type party struct {
	answer func(call) (status int, header http.Header)
	calls  []call
}

// call is a request that a receiver got.
type call struct {
	at    time.Duration // since the test began
	event string        // the event's id
	order string        // the number of its order
	body  string
	n     int // how many the receiver had of this event, with this one
	code  int // the answer
}

func newHarness(t *testing.T, random ...float64) *harness {
	t.Helper()
	t.Parallel() // each has a table of its own
	w := &harness{
		Service: servicetest.New(t), t: t, receivers: map[string]*party{}, random: random,
		start: time.Date(2026, 11, 21, 6, 35, 17, 0, time.UTC),
	}
	w.Set(w.start)
	w.grid = w.start.Truncate(time.Minute).Add(time.Minute)
	w.deaths = &deaths{client: w.Client().Options().HTTPClient}
	w.mail = &mailbox{clock: w.Time, deaths: w.deaths}
	w.boot()
	w.server = httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(w.server.Close)
	return w
}

// boot makes the handlers, as processes that start do.
func (w *harness) boot() {
	w.t.Helper()
	table := func(function string) *dynamo.Table { return permittedTable(w.t, w.Service, function, w.deaths) }
	logger := w.Leaks.Logger()
	for i := range w.workers {
		w.workers[i] = worker.New(table("worker"), w.mail, outbound.New(outbound.Config{AllowPrivateTargets: true}), w.Box,
			worker.Config{Clock: w.Time, Random: w.nextRandom, Logger: logger, MaxAttempts: 200})
	}
	w.dispatcher = dispatcher.New(table("dispatcher"), w.mail, w, w.Time, logger)
	w.dispatcher.Topic = w.topic
	w.counter = counter.New(table("indexer"), w.mail, w.Time, logger)
	w.sweeper = sweeper.New(table("sweeper"), w.mail, sweeper.IndexCompaction{IndexQueue: noLists{}, Compactor: noLists{}}, w.Time, logger)
}

func (w *harness) nextRandom() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	return w.random[w.turn%len(w.random)]
}

// Park fails the test: nothing in it is beyond the dispatcher.
func (w *harness) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	if !w.deaths.lives() {
		return errDead
	}
	w.t.Errorf("a stream record was parked: %v", cause)
	return nil
}

// noLists does nothing with index jobs: no indexer follows the stream here.
type noLists struct{}

func (noLists) Send(context.Context, value.ID, string) error        { return nil }
func (noLists) Run(context.Context, value.ID, string) (bool, error) { return false, nil }

// endpoint makes an endpoint whose receiver answers as given.
func (w *harness) endpoint(name string, retries int, answer func(call) (int, http.Header), subscribed ...string) *webhook.Endpoint {
	w.t.Helper()
	w.mu.Lock()
	w.receivers["/"+name] = &party{answer: answer}
	w.mu.Unlock()
	url := w.server.URL + "/" + name
	e, _ := w.NewEndpoint(w.t, webhook.CreateWebhookEndpointDto{URL: &url, Events: &subscribed, RetryCount: &retries})
	return e
}

// receive answers a delivery.
func (w *harness) receive(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var payload struct {
		Data struct {
			Object struct{ OrderNumber string } `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &payload); err != nil {
		w.t.Errorf("a delivery of %q: %v", body, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.receivers[r.URL.Path]
	c := call{at: w.Time().Sub(w.start), event: r.Header.Get("webhook-id"), order: payload.Data.Object.OrderNumber, body: string(body), n: 1}
	for _, other := range p.calls {
		if other.event == c.event {
			c.n++
		}
	}
	var header http.Header
	c.code, header = p.answer(c)
	p.calls = append(p.calls, c)
	for name, values := range header {
		out.Header()[name] = values
	}
	out.WriteHeader(c.code)
}

// calls returns what a receiver got so far.
func (w *harness) calls(name string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.receivers["/"+name].calls)
}

// order stores a new order; order.created and others follow from it.
func (w *harness) order(prefix string) {
	w.t.Helper()
	w.orders++
	record := fmt.Sprintf(`{"id":%q,"orderNumber":"%s%d","currency":"EUR"}`, value.NewID(), prefix, w.orders)
	w.Put(w.t, commerce.KindOrder, nil, record, nil)
}

// until lets time pass up to that long after the test began. Everything that
// is due on the way happens at its time.
func (w *harness) until(since time.Duration) {
	w.t.Helper()
	end := w.start.Add(since)
	if w.Time().After(end) {
		w.t.Fatalf("%s after the beginning is past", since)
	}
	for {
		w.work()
		next := end
		if at, waits := w.mail.next(); waits && at.Before(next) {
			next = at
		}
		run, due := next, false
		if !next.Before(w.grid) { // before it no run comes
			run = w.nextRun()
			due = !run.After(next)
		}
		if due {
			next = run
		}
		w.Set(next)
		switch {
		case due:
			w.grid = run.Add(time.Minute)
			w.sweeps++
			w.invoke(func() error {
				_, err := w.sweeper.Handle(w.t.Context(), sweeper.Event{})
				return err
			}, w.sweeps%maxCut)
		case next.Equal(end):
			w.work()
			return
		}
	}
}

// nextRun is the next full minute at which the sweeper has something to do:
// a mark that lies less than the minute ahead that it looks. When nothing is
// marked that is in a thousand years.
func (w *harness) nextRun() time.Time {
	w.t.Helper()
	end := w.start.AddDate(1000, 0, 0)
	marks := make([]time.Time, dynamo.Shards)
	var group errgroup.Group
	group.SetLimit(4)
	for shard := range marks {
		marks[shard] = end
		group.Go(func() error {
			due, err := w.Table.Due(w.t.Context(), shard, "", value.TimeOf(end), 1)
			if err == nil && len(due) > 0 {
				text, _, _ := strings.Cut(due[0].Mark, "#")
				marks[shard], err = time.Parse(time.RFC3339Nano, text)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.t.Fatal(err)
	}
	first := slices.MinFunc(marks, time.Time.Compare)
	run := first.Add(-time.Minute).Truncate(time.Minute).Add(time.Minute)
	for _, earliest := range []time.Time{w.grid, w.Time().Add(time.Minute - 1).Truncate(time.Minute)} {
		if run.Before(earliest) {
			run = earliest
		}
	}
	return run
}

// work hands the stream to the dispatcher and the counter, and messages to the
// worker, until nothing is left of them at this time.
func (w *harness) work() {
	w.t.Helper()
	for busy := true; busy; {
		busy = false
		if records := w.StreamRecords(w.t, dynamo.StreamRecord, dynamo.StreamEndpoint, dynamo.StreamEvent); len(records) > 0 {
			w.invoke(func() error {
				answer, err := w.dispatcher.Handle(w.t.Context(), events.DynamoDBEvent{Records: records})
				if len(answer.BatchItemFailures) > 0 {
					err = fmt.Errorf("dispatch: %+v", answer)
				}
				return err
			})
			w.invoke(func() error {
				batch := events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: records}}
				if failures := w.counter.Handle(w.t.Context(), batch); len(failures) > 0 {
					return fmt.Errorf("count: %+v", failures)
				}
				return nil
			})
			busy = true
		}
		for lane, most := range map[webhook.Lane]int{webhook.LaneMain: 10, webhook.LaneSlow: 5} {
			if batch := w.mail.receive(lane, most); len(batch) > 0 {
				w.deliver(batch)
				busy = true
			}
		}
	}
}

// maxCut is one more than the most effects after which a worker or a sweeper
// dies. It dies once: after a part of its effects the rest waits for the next
// attempt, or for the due mark.
const maxCut = 6

// deliver hands a batch to the worker and deletes what is done.
func (w *harness) deliver(batch []events.SQSMessage) {
	w.t.Helper()
	w.batches++
	var answer events.SQSEventResponse
	w.invoke(func() (err error) {
		answer, err = w.workers[w.batches%len(w.workers)].Handle(w.t.Context(), events.SQSEvent{Records: batch})
		return err
	}, w.batches%maxCut)
	w.mail.remove(func(id string) bool {
		ours := slices.ContainsFunc(batch, func(m events.SQSMessage) bool { return m.MessageId == id })
		return ours && !slices.ContainsFunc(answer.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == id })
	})
}

// stored is the endpoint as it is.
func (w *harness) stored(e *webhook.Endpoint) *webhook.Endpoint {
	w.t.Helper()
	return w.StoredEndpoint(w.t, e.ID)
}

// deliveries are the endpoint's, the oldest first.
func (w *harness) deliveries(e *webhook.Endpoint) []*webhook.Delivery {
	w.t.Helper()
	found := slices.DeleteFunc(w.AllDeliveries(w.t), func(d *webhook.Delivery) bool { return d.EndpointID != e.ID })
	slices.SortFunc(found, func(a, b *webhook.Delivery) int { return int(a.CreatedAt - b.CreatedAt) })
	return found
}

// checkCounters compares an endpoint's counters with what its receiver knows.
func (w *harness) checkCounters(name string, e *webhook.Endpoint) {
	w.t.Helper()
	var successes, failures int64
	for _, c := range w.calls(name) {
		if c.code < 300 {
			successes++
		} else {
			failures++
		}
	}
	w.CountStream(w.t)
	found, err := w.Table.Counters(w.t.Context(), w.Org, e.ID)
	if c := found[e.ID]; err != nil || c.SuccessCount != successes || c.FailureCount != failures {
		w.t.Errorf("%s: counted %d successes and %d failures, %v; the receiver knows %d and %d", name, c.SuccessCount, c.FailureCount, err, successes, failures)
	}
}

// activate is what an owner does by PATCH.
func (w *harness) activate(e *webhook.Endpoint) {
	w.t.Helper()
	if _, err := w.Table.ChangeEndpoint(w.t.Context(), w.Org, e.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.Update(webhook.UpdateWebhookEndpointDto{Status: account.Patch[webhook.Status]{Given: true, Value: webhook.Active}}, w.Now())
	}); err != nil {
		w.t.Fatal(err)
	}
}
