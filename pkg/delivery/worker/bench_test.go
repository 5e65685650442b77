package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
	"github.com/commerce-integration/service/pkg/webhook"
)

// memory is a store and a queue without a network, so that a benchmark
// measures the worker, its client and the receiver alone.
type memory struct {
	payload   []byte
	endpoints map[value.ID]*webhook.Endpoint
	conflicts atomic.Int64
	moved     atomic.Int64

	mu         sync.Mutex
	deliveries map[value.ID]*webhook.Delivery
	shards     map[shardID]webhook.StoredCounterShard
}

type shardID struct {
	endpoint value.ID
	shard    int
}

func (m *memory) DeliveryInputs(_ context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]webhook.DeliveryInput, len(refs))
	for i, r := range refs {
		found[i] = webhook.DeliveryInput{
			Delivery: m.deliveries[r.DeliveryID], Payload: m.payload, Endpoint: m.endpoints[r.EndpointID], Application: webhook.ApplicationActive,
		}
	}
	return found, nil
}

func (m *memory) RecordOutcomes(_ context.Context, outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	conflict := &webhook.WriteConflict{Shards: map[int]webhook.StoredCounterShard{}}
	for i, w := range shards {
		if now := m.shards[shardID{w.EndpointID, w.Number}]; now.Revision != w.Revision {
			conflict.Shards[i] = now
		}
	}
	if len(conflict.Shards) > 0 {
		m.conflicts.Add(1)
		return conflict, nil
	}
	for _, o := range outcomes {
		m.deliveries[o.Next.ID] = o.Next
	}
	for _, w := range shards {
		m.shards[shardID{w.EndpointID, w.Number}] = webhook.StoredCounterShard{Number: w.Number, Revision: w.Revision + 1, Shard: w.Next}
	}
	return nil, nil
}

func (m *memory) RecordEach(ctx context.Context, outcomes []webhook.DeliveryChange) (*webhook.WriteConflict, error) {
	return m.RecordOutcomes(ctx, outcomes, nil)
}

func (m *memory) Counted(context.Context) (value.Time, error) { return 0, nil }

func (m *memory) CounterShard(_ context.Context, _, endpoint value.ID, shard int) (webhook.StoredCounterShard, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, found := m.shards[shardID{endpoint, shard}]; found {
		return s, nil
	}
	return webhook.StoredCounterShard{Number: shard, Shard: &webhook.CounterShard{}}, nil
}

func (m *memory) PutDelivery(_ context.Context, _, next *webhook.Delivery) (*webhook.Delivery, error) {
	return next, nil
}

func (m *memory) Health(context.Context, value.ID, value.ID, value.Time, value.Time) (webhook.Health, error) {
	return webhook.Health{}, nil
}

func (m *memory) Endpoint(_ context.Context, _, id value.ID) (*webhook.Endpoint, error) {
	return m.endpoints[id], nil
}

func (m *memory) SetRouting(context.Context, value.ID, value.ID, webhook.Routing, webhook.Routing) (bool, error) {
	return true, nil
}

func (m *memory) ChangeEndpoint(_ context.Context, _, id value.ID, _ func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error) {
	return m.endpoints[id], nil
}

func (m *memory) TakePermit(context.Context, value.ID, value.ID, string, value.Time, value.Time) (bool, error) {
	return true, nil
}

func (m *memory) Lane(*events.SQSMessage) webhook.Lane { return webhook.LaneMain }

func (m *memory) Move(_ context.Context, _ webhook.Lane, moves ...queue.Move) error {
	m.moved.Add(int64(len(moves)))
	return nil
}

func (m *memory) ChangeVisibility(context.Context, webhook.Lane, ...queue.VisibilityChange) error {
	return nil
}

func (m *memory) TooManyInFlight(context.Context, webhook.Lane) bool { return false }

const benchBatch = 10

// BenchmarkWorker delivers events of 1 KB in batches of ten to a receiver in
// the same process, with as many invocations of one worker at a time as the
// name says. CPU is that of worker and receiver together.
func BenchmarkWorker(b *testing.B) {
	for _, tt := range []struct{ endpoints, invocations int }{{1, 1}, {1, 8}, {16, 8}, {16, 200}} {
		b.Run(fmt.Sprintf("%d_endpoints/%d_invocations", tt.endpoints, tt.invocations), func(b *testing.B) {
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			defer srv.Close()
			w, m, batches := benchWorker(b, srv.URL, tt.endpoints)
			b.ReportAllocs()
			b.ResetTimer()
			before, start := cputime.Used(), time.Now()
			var next atomic.Int64
			var group sync.WaitGroup
			for range tt.invocations {
				group.Go(func() {
					for i := int(next.Add(1)) - 1; i < len(batches); i = int(next.Add(1)) - 1 {
						response, err := w.Handle(b.Context(), batches[i])
						if err != nil || len(response.BatchItemFailures) > 0 {
							b.Errorf("%+v, %v", response, err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "deliveries/s")
			b.ReportMetric(float64((cputime.Used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
			b.ReportMetric(float64(m.moved.Load())/float64(b.N), "moved/op")
		})
	}
}

func benchWorker(b *testing.B, url string, endpoints int) (*worker.Worker, *memory, []events.SQSEvent) {
	b.Helper()
	box, err := sealed.NewBox(make([]byte, sealed.KeySize))
	if err != nil {
		b.Fatal(err)
	}
	m := &memory{
		payload:   bytes.Repeat([]byte("x"), 1024),
		endpoints: map[value.ID]*webhook.Endpoint{}, deliveries: map[value.ID]*webhook.Delivery{}, shards: map[shardID]webhook.StoredCounterShard{},
	}
	org, app, now := value.NewID(), value.NewID(), value.TimeOf(time.Now())
	var all []*webhook.Endpoint
	for range endpoints {
		e, _ := webhook.NewEndpoint(org, app, webhook.CreateWebhookEndpointDto{URL: &url, Events: &[]string{"*"}}, box.Seal, now)
		m.endpoints[e.ID] = e
		all = append(all, e)
	}
	batches := make([]events.SQSEvent, (b.N+benchBatch-1)/benchBatch)
	for i := range b.N {
		delivery := webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created", OrganizationID: org}, all[i%len(all)], "", now)
		m.deliveries[delivery.ID] = delivery
		one := &batches[i/benchBatch]
		one.Records = append(one.Records, events.SQSMessage{MessageId: value.NewID().String(), Body: delivery.Ref().Body()})
	}
	client := outbound.New(outbound.Config{AllowPrivateTargets: true})
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // what lines cost is part of it
	return worker.New(m, m, client, box, worker.Config{Logger: logger}), m, batches
}
