package workload

import (
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	senders        = 4  // requests to the queue at a time
	maxMessages    = 10 // of one request
	storedProducts = 400
)

// Load is tenants that send new products in turns, each in a message of its own.
type Load struct {
	service *Service
	tenants []*Tenant
	sent    int
}

// NewLoad makes organizations whose endpoints are for new products.
func (s *Service) NewLoad(ctx context.Context, organizations int) (*Load, error) {
	l := &Load{service: s}
	for range organizations {
		t, err := s.NewTenant(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := t.CreateEndpoint(ctx, map[string]any{"url": s.Receiver.URL, "events": []string{"product.created"}}); err != nil {
			return nil, err
		}
		l.tenants = append(l.tenants, t)
	}
	return l, nil
}

// next is a message of the next tenant's next product, which it returns too.
func (l *Load) next() (Message, value.ID) {
	t := l.tenants[l.sent%len(l.tenants)]
	n := t.sent
	l.sent, t.sent = l.sent+1, t.sent+1
	return Message{Organization: t.ID, Records: []map[string]any{PutProduct(t.ID, n, false)}}, ProductID(t.ID, n)
}

// Burst sends products as fast as the queue takes them, and returns how long it took until all their events had
// arrived.
func (l *Load) Burst(ctx context.Context, products int) (time.Duration, error) {
	messages, ids := make([]Message, products), make([]value.ID, products)
	for n := range products {
		messages[n], ids[n] = l.next()
	}
	started := time.Now()
	if err := l.service.sendAll(ctx, messages, maxMessages); err != nil {
		return 0, err
	}
	arrived, err := l.service.Receiver.Await(ctx, ids)
	if err != nil {
		return 0, err
	}
	return slices.MaxFunc(arrived, time.Time.Compare).Sub(started), nil
}

func (s *Service) sendAll(ctx context.Context, messages []Message, each int) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for batch := range slices.Chunk(messages, each) {
		group.Go(func() error { return s.Send(sending, batch...) })
	}
	return group.Wait()
}

// Pace sends a product each time, and returns how long their events took to arrive, in ascending order. It waits for no
// event before the next product, and counts from when a product was due: a sender that is held up does not hide that
// events wait.
func (l *Load) Pace(ctx context.Context, every time.Duration, products int) (Latencies, error) {
	ids, due := make([]value.ID, products), make([]time.Time, products)
	group, sending := errgroup.WithContext(ctx)
	started := time.Now()
	for n := range products {
		var m Message
		m, ids[n] = l.next()
		due[n] = started.Add(time.Duration(n) * every)
		if err := pause.For(ctx, time.Until(due[n])); err != nil {
			return nil, err
		}
		group.Go(func() error { return l.service.Send(sending, m) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	arrived, err := l.service.Receiver.Await(ctx, ids)
	if err != nil {
		return nil, err
	}
	latencies := make(Latencies, products)
	for n, at := range arrived {
		latencies[n] = at.Sub(due[n])
	}
	slices.Sort(latencies)
	return latencies, nil
}

// Latencies are in ascending order.
type Latencies []time.Duration

// Percentile is the latency within which p percent came, of all of them; 0 of none.
func (l Latencies) Percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[max(0, int(math.Ceil(p/100*float64(len(l))))-1)]
}

// Store sends an organization's first products in messages of many records. They make no events.
func (s *Service) Store(ctx context.Context, organization value.ID, products int) error {
	var messages []Message
	for first := 0; first < products; first += storedProducts {
		m := Message{Organization: organization}
		for n := first; n < min(first+storedProducts, products); n++ {
			m.Records = append(m.Records, PutProduct(organization, n, true))
		}
		messages = append(messages, m)
	}
	return s.sendAll(ctx, messages, 1)
}
