package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/worker"
)

// world is the service from a record's change to its receivers, in which days
// pass in moments: the handlers of dispatcher, worker and sweeper as they are,
// a real table with its stream, and receivers over HTTP, on one clock that
// stands still while they work. The sweeper runs at every full minute, but for
// those in which no due mark is near, when it would find nothing.
type world struct {
	t          *testing.T
	table      *dynamo.Table
	stream     *stream
	mail       *mailbox
	workers    [2]*worker.Worker // instances, which take turns
	sweeper    *sweeper.Sweeper
	dispatcher *dispatcher.Dispatcher
	box        *sealed.Box
	org, app   value.ID
	server     *httptest.Server
	start      time.Time
	grid       time.Time // of the next run of the sweeper
	orders     int
	batches    int

	mu        sync.Mutex
	now       time.Time
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
	at    time.Duration // since the world began
	event string        // the event's id
	order string        // the number of its order
	body  string
	n     int // how many the receiver had of this event, with this one
	code  int // the answer
}

func newWorld(t *testing.T, random ...float64) *world {
	t.Helper()
	client, name := dynamotest.Client(t)
	w := &world{
		t: t, org: value.NewID(), receivers: map[string]*party{}, random: random,
		start: time.Date(2026, 11, 21, 6, 35, 17, 0, time.UTC),
	}
	w.now, w.grid = w.start, w.start.Truncate(time.Minute).Add(time.Minute)
	w.table, w.stream = dynamo.New(client, name, w.clock), newStream(t, client, name)
	w.mail = &mailbox{clock: w.clock}
	var err error
	if w.box, err = sealed.NewBox(make([]byte, sealed.KeySize)); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	for i := range w.workers {
		w.workers[i] = worker.New(w.table, w.mail, outbound.New(outbound.Config{AllowPrivateTargets: true}), w.box,
			worker.Config{Clock: w.clock, Random: w.nextRandom, Logger: quiet})
	}
	w.dispatcher = dispatcher.New(w.table, w.mail, w, w.clock, quiet)
	w.sweeper = sweeper.New(w.table, w.mail, sweeper.IndexCompaction{IndexQueue: noLists{}, Compactor: noLists{}}, sweeper.Config{Clock: w.clock, Logger: quiet})
	w.app = dynamotest.Application(t, w.table, w.org)
	w.server = httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) nextRandom() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	return w.random[w.turn%len(w.random)]
}

// Park fails the test: nothing in it is beyond the dispatcher.
func (w *world) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	w.t.Errorf("a stream record was parked: %v", cause)
	return nil
}

// noLists stands for the index jobs, of which there are none: nobody follows
// the stream for the lists.
type noLists struct{}

func (noLists) Send(context.Context, value.ID, string) error        { return nil }
func (noLists) Run(context.Context, value.ID, string) (bool, error) { return false, nil }

// endpoint makes an endpoint whose receiver answers as given.
func (w *world) endpoint(name string, retries int, answer func(call) (int, http.Header), subscribed ...string) *webhook.Endpoint {
	w.t.Helper()
	w.mu.Lock()
	w.receivers["/"+name] = &party{answer: answer}
	w.mu.Unlock()
	url := w.server.URL + "/" + name
	e, _ := webhook.NewEndpoint(w.org, w.app, webhook.CreateWebhookEndpointDto{URL: &url, Events: &subscribed, RetryCount: &retries}, w.box.Seal, value.TimeOf(w.clock()))
	if err := w.table.CreateEndpoint(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// receive answers a delivery.
func (w *world) receive(out http.ResponseWriter, r *http.Request) {
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
	c := call{at: w.now.Sub(w.start), event: r.Header.Get("webhook-id"), order: payload.Data.Object.OrderNumber, body: string(body), n: 1}
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
func (w *world) calls(name string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.receivers["/"+name].calls)
}

// order stores a new order; order.created and others follow from it.
func (w *world) order(prefix string) {
	w.t.Helper()
	w.orders++
	record := fmt.Sprintf(`{"id":%q,"orderNumber":"%s%d","currency":"EUR"}`, value.NewID(), prefix, w.orders)
	stored, err := commerce.Apply(nil, commerce.Change{
		Kind: commerce.KindOrder, Op: commerce.OpPut, OrganizationID: w.org, Record: []byte(record),
	}, value.TimeOf(w.clock()))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.table.PutRecord(w.t.Context(), nil, stored); err != nil {
		w.t.Fatal(err)
	}
}

// until lets time pass up to that long after the world began. Everything that
// is due on the way happens at its time.
func (w *world) until(since time.Duration) {
	w.t.Helper()
	end := w.start.Add(since)
	if w.clock().After(end) {
		w.t.Fatalf("%s after the beginning is past", since)
	}
	for {
		w.work()
		next := end
		if at, waits := w.mail.next(); waits && at.Before(next) {
			next = at
		}
		run := w.nextRun()
		due := !run.After(next)
		if due {
			next = run
		}
		w.mu.Lock()
		w.now = next
		w.mu.Unlock()
		switch {
		case due:
			w.grid = run.Add(time.Minute)
			if _, err := w.sweeper.Handle(w.t.Context(), sweeper.Event{}); err != nil {
				w.t.Fatalf("%s after the beginning: sweep: %v", run.Sub(w.start), err)
			}
		case next.Equal(end):
			w.work()
			return
		}
	}
}

// nextRun is the next full minute at which the sweeper has something to do:
// a mark that lies less than the minute ahead that it looks. When nothing is
// marked that is in a thousand years.
func (w *world) nextRun() time.Time {
	w.t.Helper()
	end := w.start.AddDate(1000, 0, 0)
	marks := make([]time.Time, dynamo.DueShards)
	var group errgroup.Group
	group.SetLimit(4)
	for shard := range marks {
		marks[shard] = end
		group.Go(func() error {
			due, err := w.table.Due(w.t.Context(), shard, "", value.TimeOf(end), 1)
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
	for _, earliest := range []time.Time{w.grid, w.clock().Add(time.Minute - 1).Truncate(time.Minute)} {
		if run.Before(earliest) {
			run = earliest
		}
	}
	return run
}

// work hands the stream to the dispatcher and messages to the worker until
// nothing is left of them at this time.
func (w *world) work() {
	w.t.Helper()
	for busy := true; busy; {
		busy = false
		if records := w.stream.read(w.t); len(records) > 0 {
			answer, err := w.dispatcher.Handle(w.t.Context(), events.DynamoDBEvent{Records: records})
			if err != nil || len(answer.BatchItemFailures) > 0 {
				w.t.Fatalf("dispatch: %+v, %v", answer, err)
			}
		}
		for lane, most := range map[webhook.Lane]int{webhook.LaneMain: 10, webhook.LaneSlow: 5} {
			if batch := w.mail.receive(lane, most); len(batch) > 0 {
				w.deliver(batch)
				busy = true
			}
		}
	}
}

// deliver hands a batch to the worker and deletes what is done.
func (w *world) deliver(batch []events.SQSMessage) {
	w.t.Helper()
	w.batches++
	answer, err := w.workers[w.batches%len(w.workers)].Handle(w.t.Context(), events.SQSEvent{Records: batch})
	if err != nil {
		w.t.Fatalf("deliver: %v", err)
	}
	w.mail.remove(func(id string) bool {
		ours := slices.ContainsFunc(batch, func(m events.SQSMessage) bool { return m.MessageId == id })
		return ours && !slices.ContainsFunc(answer.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == id })
	})
}

// stored is the endpoint as it is.
func (w *world) stored(e *webhook.Endpoint) *webhook.Endpoint {
	w.t.Helper()
	got, err := w.table.Endpoint(w.t.Context(), w.org, e.ID)
	if err != nil || got == nil {
		w.t.Fatalf("endpoint %s: %+v, %v", e.ID, got, err)
	}
	return got
}

// rows are the endpoint's, the oldest first.
func (w *world) rows(e *webhook.Endpoint) []*webhook.Delivery {
	w.t.Helper()
	var found []*webhook.Delivery
	if err := w.table.AllDeliveries(w.t.Context(), w.org, func(r *webhook.Delivery) error {
		if r.EndpointID == e.ID {
			found = append(found, r)
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b *webhook.Delivery) int { return int(a.CreatedAt - b.CreatedAt) })
	return found
}

// checkCounters compares an endpoint's counters with what its receiver knows.
func (w *world) checkCounters(name string, e *webhook.Endpoint) {
	w.t.Helper()
	var successes, failures int64
	for _, c := range w.calls(name) {
		if c.code < 300 {
			successes++
		} else {
			failures++
		}
	}
	found, err := w.table.Counters(w.t.Context(), w.org, e.ID)
	if c := found[e.ID]; err != nil || c.SuccessCount != successes || c.FailureCount != failures {
		w.t.Errorf("%s: counted %d successes and %d failures, %v; the receiver knows %d and %d", name, c.SuccessCount, c.FailureCount, err, successes, failures)
	}
}

// activate is what an owner does by PATCH.
func (w *world) activate(e *webhook.Endpoint) {
	w.t.Helper()
	if _, err := w.table.ChangeEndpoint(w.t.Context(), w.org, e.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.Update(webhook.EndpointChange{Status: account.Patch[webhook.Status]{Given: true, Value: webhook.Active}}, value.TimeOf(w.clock()))
	}); err != nil {
		w.t.Fatal(err)
	}
}

// stream reads the table's.
type stream struct {
	client   *dynamodbstreams.Client
	iterator *string
}

func newStream(t *testing.T, table *dynamodb.Client, name string) *stream {
	t.Helper()
	described, err := table.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	arn, o := described.Table.LatestStreamArn, table.Options()
	s := &stream{client: dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials})}
	shards, err := s.client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil || len(shards.StreamDescription.Shards) != 1 {
		t.Fatalf("stream: %+v, %v", shards, err)
	}
	first, err := s.client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: arn, ShardId: shards.StreamDescription.Shards[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.iterator = first.ShardIterator
	return s
}

// read returns the new records that are the dispatcher's.
func (s *stream) read(t *testing.T) []events.DynamoDBEventRecord {
	t.Helper()
	var found []events.DynamoDBEventRecord
	for {
		page, err := s.client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: s.iterator})
		if err != nil {
			t.Fatal(err)
		}
		s.iterator = page.NextShardIterator
		for _, r := range page.Records {
			item, _ := r.Dynamodb.NewImage["t"].(*types.AttributeValueMemberS)
			if item == nil || item.Value != dynamo.StreamRecord && item.Value != dynamo.StreamEndpoint {
				continue
			}
			found = append(found, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
				SequenceNumber: aws.ToString(r.Dynamodb.SequenceNumber),
				Keys:           image(r.Dynamodb.Keys), OldImage: image(r.Dynamodb.OldImage), NewImage: image(r.Dynamodb.NewImage),
			}})
		}
		if len(page.Records) == 0 {
			return found
		}
	}
}

// image turns what the stream gives into what a function gets, as far as the
// table's items go.
func image(from map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	if from == nil {
		return nil
	}
	to := map[string]events.DynamoDBAttributeValue{}
	for name, v := range from {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			to[name] = events.NewStringAttribute(v.Value)
		case *types.AttributeValueMemberN:
			to[name] = events.NewNumberAttribute(v.Value)
		case *types.AttributeValueMemberB:
			to[name] = events.NewBinaryAttribute(v.Value)
		case *types.AttributeValueMemberBOOL:
			to[name] = events.NewBooleanAttribute(v.Value)
		}
	}
	return to
}
