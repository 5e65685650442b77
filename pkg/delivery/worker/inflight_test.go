package worker_test

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// scale divides the size of the test, which takes a quarter of a minute at 1.
const scale = 10

// model is a table and two queues in memory under a clock that the test
// moves. What it keeps of deliveries, shards and routings follows the table's
// rules; its queues hand out messages in the order in which they come.
type model struct {
	mu         sync.Mutex
	now        time.Time
	endpoints  map[value.ID]*webhook.Endpoint
	deliveries map[value.ID]*webhook.Delivery
	shards     map[shardID]webhook.StoredCounterShard
	lanes      map[webhook.Lane]*modelQueue
	next       int // number of the last message
}

type shardID struct {
	endpoint value.ID
	shard    int
}

// modelQueue is one of the queues.
type modelQueue struct {
	visible []events.SQSMessage
	later   laterMessages                // delayed or hidden
	flying  map[string]events.SQSMessage // received and not deleted, by their id
	hidden  map[string]bool              // those of them that are in later
	most    int                          // that were in flight at a time
}

type laterMessage struct {
	at time.Time
	m  events.SQSMessage
}

// laterMessages is a heap, the first to come on top.
type laterMessages []laterMessage

func (l laterMessages) Len() int           { return len(l) }
func (l laterMessages) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l laterMessages) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *laterMessages) Push(x any)        { *l = append(*l, x.(laterMessage)) }

func (l *laterMessages) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

func newModel() *model {
	m := &model{
		now: time.Now(), endpoints: map[value.ID]*webhook.Endpoint{}, deliveries: map[value.ID]*webhook.Delivery{},
		shards: map[shardID]webhook.StoredCounterShard{}, lanes: map[webhook.Lane]*modelQueue{},
	}
	for _, lane := range []webhook.Lane{webhook.LaneMain, webhook.LaneSlow} {
		m.lanes[lane] = &modelQueue{flying: map[string]events.SQSMessage{}, hidden: map[string]bool{}}
	}
	return m
}

func (m *model) clock() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *model) DeliveryInputs(_ context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]webhook.DeliveryInput, len(refs))
	for i, r := range refs {
		found[i] = webhook.DeliveryInput{
			Delivery: m.deliveries[r.DeliveryID], Payload: []byte("{}"), Endpoint: m.endpoints[r.EndpointID], Application: webhook.ApplicationActive,
		}
	}
	return found, nil
}

func (m *model) RecordOutcomes(_ context.Context, outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	conflict := &webhook.WriteConflict{Shards: map[int]webhook.StoredCounterShard{}}
	for i, w := range shards {
		if now := m.shards[shardID{w.EndpointID, w.Number}]; now.Revision != w.Revision {
			conflict.Shards[i] = now
		}
	}
	if len(conflict.Shards) > 0 {
		return conflict, nil
	}
	for _, o := range outcomes {
		if now := m.deliveries[o.Next.ID]; now.UpdatedAt != o.Previous.UpdatedAt {
			return nil, fmt.Errorf("delivery %s was changed by two", now.ID)
		}
		m.deliveries[o.Next.ID] = o.Next
	}
	for _, w := range shards {
		m.shards[shardID{w.EndpointID, w.Number}] = webhook.StoredCounterShard{Number: w.Number, Revision: w.Revision + 1, Shard: w.Next}
	}
	return nil, nil
}

func (m *model) RecordEach(ctx context.Context, outcomes []webhook.DeliveryChange) (*webhook.WriteConflict, error) {
	return m.RecordOutcomes(ctx, outcomes, nil)
}

func (m *model) Counted(context.Context) (value.Time, error) { return 0, nil }

func (m *model) CounterShard(_ context.Context, _, endpoint value.ID, shard int) (webhook.StoredCounterShard, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, found := m.shards[shardID{endpoint, shard}]; found {
		return s, nil
	}
	return webhook.StoredCounterShard{Number: shard, Shard: &webhook.CounterShard{}}, nil
}

func (m *model) ChangeEndpoint(_ context.Context, _, id value.ID, _ func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error) {
	return m.endpoints[id], nil
}

func (m *model) TakePermit(context.Context, value.ID, value.ID, string, value.Time, value.Time) (bool, error) {
	return true, nil
}

func (m *model) PutDelivery(_ context.Context, previous, next *webhook.Delivery) (*webhook.Delivery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.deliveries[next.ID]; now.UpdatedAt != previous.UpdatedAt {
		return now, fault.ErrChanged
	}
	m.deliveries[next.ID] = next
	return next, nil
}

func (m *model) Health(_ context.Context, _, endpoint value.ID, since, now value.Time) (webhook.Health, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var shards []*webhook.CounterShard
	for shard := range webhook.MaxCounterShards {
		if s, found := m.shards[shardID{endpoint, shard}]; found {
			shards = append(shards, s.Shard)
		}
	}
	return webhook.HealthOf(shards, since, now), nil
}

func (m *model) Endpoint(_ context.Context, _, id value.ID) (*webhook.Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.endpoints[id], nil
}

func (m *model) SetRouting(_ context.Context, _, id value.ID, previous, next webhook.Routing) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := *m.endpoints[id]
	if !changed.Routing().Equal(previous) {
		return false, nil
	}
	changed.Circuit, changed.Lane = next.Circuit, next.Lane
	m.endpoints[id] = &changed
	return true, nil
}

func (m *model) Lane(message *events.SQSMessage) webhook.Lane {
	return webhook.Lane(message.EventSourceARN)
}

// send adds a message to a lane.
func (m *model) send(to webhook.Lane, body string, delay time.Duration) {
	m.next++
	q, id := m.lanes[to], strconv.Itoa(m.next)
	message := events.SQSMessage{MessageId: id, ReceiptHandle: id, Body: body, EventSourceARN: string(to)}
	if delay > 0 {
		heap.Push(&q.later, laterMessage{m.now.Add(delay), message})
	} else {
		q.visible = append(q.visible, message)
	}
}

func (m *model) Move(_ context.Context, to webhook.Lane, moves ...queue.Move) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range moves {
		one.Ref.As = one.MessageID
		m.send(to, one.Ref.Body(), one.Delay)
	}
	return nil
}

func (m *model) ChangeVisibility(_ context.Context, in webhook.Lane, changes ...queue.VisibilityChange) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.lanes[in]
	for _, h := range changes {
		q.hidden[h.Receipt] = true
		heap.Push(&q.later, laterMessage{m.now.Add(h.For), q.flying[h.Receipt]})
	}
	return nil
}

func (m *model) TooManyInFlight(_ context.Context, in webhook.Lane) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.lanes[in].flying) > queue.MaxInFlight/scale
}

// pass moves the clock; what was delayed or hidden until then comes.
func (m *model) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	for _, q := range m.lanes {
		for len(q.later) > 0 && !q.later[0].at.After(m.now) {
			l, _ := heap.Pop(&q.later).(laterMessage)
			delete(q.flying, l.m.MessageId)
			delete(q.hidden, l.m.MessageId)
			q.visible = append(q.visible, l.m)
		}
	}
}

// receive takes up to n messages of a lane.
func (m *model) receive(in webhook.Lane, n int) []events.SQSMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.lanes[in]
	batch := q.visible[:min(n, len(q.visible))]
	q.visible = q.visible[len(batch):]
	for _, message := range batch {
		q.flying[message.MessageId] = message
	}
	q.most = max(q.most, len(q.flying))
	return slices.Clone(batch)
}

// invoke gives the worker a batch of a lane, and deletes what it has done.
func (m *model) invoke(t *testing.T, w *worker.Worker, in webhook.Lane, batch []events.SQSMessage) {
	response, err := w.Handle(t.Context(), events.SQSEvent{Records: batch})
	if err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range batch {
		if !slices.Contains(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: one.MessageId}) {
			delete(m.lanes[in].flying, one.MessageId)
		} else if !m.lanes[in].hidden[one.MessageId] {
			t.Errorf("message %s stays without a time to come again", one.MessageId)
		}
	}
}

// round lets invocations of both lanes run side by side, and reports whether
// there was something to do. It takes 25 ms of the model's time.
func (m *model) round(t *testing.T, w *worker.Worker) bool {
	var group sync.WaitGroup
	found := false
	for _, lane := range []struct {
		name               webhook.Lane
		invocations, batch int
	}{{webhook.LaneMain, 10, 10}, {webhook.LaneSlow, 20, 5}} {
		for range lane.invocations {
			if batch := m.receive(lane.name, lane.batch); len(batch) > 0 {
				found = true
				group.Go(func() { m.invoke(t, w, lane.name, batch) })
			}
		}
	}
	group.Wait()
	m.pass(25 * time.Millisecond)
	return found
}

// SQS hands out nothing any more when 120,000 messages are in flight. However
// many endpoints are dead, and however many events wait for them, fewer than
// a fifth of that are, and the others' events go out.
func TestDeadEndpointsTogetherHoldABoundedNumberOfMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates hours")
	}
	const dead, each = 1200 / scale, 167
	// Nobody listens at a port that the system gives to nobody.
	const deadURL = "http://127.0.0.1:1/hook"
	m := newModel()
	box, err := sealed.NewBox(make([]byte, sealed.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(m, m, outbound.New(outbound.Config{AllowPrivateTargets: true}), box,
		worker.Config{Clock: m.clock, Logger: slog.New(slog.DiscardHandler)})
	org, app, now := value.NewID(), value.NewID(), value.TimeOf(m.now)
	endpoint := func(url string) *webhook.Endpoint {
		e, _ := webhook.NewEndpoint(org, app, webhook.CreateWebhookEndpointDto{URL: &url, Events: &[]string{"*"}}, box.Seal, now)
		m.endpoints[e.ID] = e
		return e
	}
	event := func(e *webhook.Endpoint) *webhook.Delivery {
		delivery := webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created", OrganizationID: org}, e, "", value.TimeOf(m.now))
		m.deliveries[delivery.ID] = delivery
		m.send(webhook.LaneMain, delivery.Ref().Body(), 0)
		return delivery
	}
	alive := endpoint(newReceiver(t, always(http.StatusOK)).url)
	var endpoints []*webhook.Endpoint
	for range dead {
		endpoints = append(endpoints, endpoint(deadURL))
	}
	var deliveries []*webhook.Delivery
	for range each {
		for _, e := range endpoints {
			deliveries = append(deliveries, event(e))
		}
		deliveries = append(deliveries, event(alive))
	}
	end := m.now.Add(10 * time.Minute)
	for m.now.Before(end) {
		if !m.round(t, w) {
			m.pass(time.Second)
		}
	}
	open, seen := 0, map[string]int{}
	for _, e := range endpoints {
		if m.endpoints[e.ID].Circuit.Open() {
			open++
		}
	}
	for _, r := range deliveries {
		now := m.deliveries[r.ID]
		seen[strings.TrimSpace(string(now.Status)+" "+string(now.HeldReason))]++
	}
	t.Logf("deliveries: %v; circuits open: %d; in flight at most: main %d, slow %d", seen, open, m.lanes[""].most, m.lanes[webhook.LaneSlow].most)
	if open != dead || seen["DELIVERED"] != each || seen["HELD CIRCUIT_OPEN"] != dead*each {
		t.Errorf("%d circuits of %d are open, deliveries are %v; want all of the dead endpoints' held and %d delivered", open, dead, seen, each)
	}
	for lane, q := range m.lanes {
		if q.most > queue.MaxInFlight/scale+200 {
			t.Errorf("lane %q: %d messages were in flight at a time, want at most %d", lane, q.most, queue.MaxInFlight/scale)
		}
	}
}
