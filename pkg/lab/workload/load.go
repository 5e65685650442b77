package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

const (
	senders         = 4  // requests to the queue at a time
	maxMessages     = 10 // of one request
	importedRecords = 400
)

// Load is tenants that send new products in turns, each in a message of its own, and the receiver of their events.
type Load struct {
	Tenants  []*Tenant
	Receiver *Receiver
	sent     int
}

// Latencies are those of all events, in ascending order.
type Latencies []time.Duration

// Percentile is the latency within which p percent came, of all of them.
func (l Latencies) Percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(l))+0.999999) - 1
	return l[max(0, min(rank, len(l)-1))]
}

// mail is a message of the next tenant's next product, which it returns too.
func (l *Load) mail() (Mail, value.ID, error) {
	t := l.Tenants[l.sent%len(l.Tenants)]
	l.sent++
	p := Parcel(t.ID, t.next)
	t.next++
	m, err := Message(t.ID, Put(p, false))
	return m, p.ID, err
}

// Burst sends products as fast as the queue takes them, and returns how long it took until all their events had
// arrived.
func (l *Load) Burst(ctx context.Context, products int) (time.Duration, error) {
	var mails []Mail
	var ids []value.ID
	for range products {
		m, id, err := l.mail()
		if err != nil {
			return 0, err
		}
		mails, ids = append(mails, m), append(ids, id)
	}
	started := time.Now()
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for batch := range slices.Chunk(mails, maxMessages) {
		group.Go(func() error { return l.Tenants[0].service.Send(sending, batch...) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	arrived, err := l.Receiver.Await(ctx, ids)
	if err != nil {
		return 0, err
	}
	return slices.MaxFunc(arrived, time.Time.Compare).Sub(started), nil
}

// Pace sends a product each time as long as more says so by their number so far, and waits until their events have
// arrived. It waits for no event before the next product, and counts from when a product was due: a sender that is
// held up does not hide that events wait.
func (l *Load) Pace(ctx context.Context, every time.Duration, more func(n int) bool) (Latencies, error) {
	var ids []value.ID
	var due []time.Time
	var mu sync.Mutex // guards failed
	var failed error
	var group sync.WaitGroup
	started := time.Now()
	for n := 0; more(n); n++ {
		m, id, err := l.mail()
		if err != nil {
			return nil, err
		}
		at := started.Add(time.Duration(n) * every)
		if err := pause.For(ctx, time.Until(at)); err != nil {
			return nil, err
		}
		ids, due = append(ids, id), append(due, at)
		group.Go(func() {
			err := l.Tenants[0].service.Send(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	if failed != nil {
		return nil, failed
	}
	arrived, err := l.Receiver.Await(ctx, ids)
	if err != nil {
		return nil, err
	}
	latencies := make(Latencies, len(arrived))
	for n, at := range arrived {
		latencies[n] = at.Sub(due[n])
	}
	slices.Sort(latencies)
	return latencies, nil
}

// Import sends new products of the first tenant in messages of many records, and waits until their events have arrived.
func (l *Load) Import(ctx context.Context, products int) error {
	t := l.Tenants[0]
	var parcels []*commerce.Product
	var ids []value.ID
	for range products {
		p := Parcel(t.ID, t.next)
		t.next++
		parcels, ids = append(parcels, p), append(ids, p.ID)
	}
	if err := t.service.Store(ctx, t.ID, false, parcels); err != nil {
		return err
	}
	_, err := l.Receiver.Await(ctx, ids)
	return err
}

// Store sends an organization's products in messages of many records. Silent ones make no events.
func (s *Service) Store(ctx context.Context, organization value.ID, silent bool, products []*commerce.Product) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for some := range slices.Chunk(products, importedRecords) {
		group.Go(func() error {
			var changes []map[string]any
			for _, p := range some {
				changes = append(changes, Put(p, silent))
			}
			m, err := Message(organization, changes...)
			if err != nil {
				return err
			}
			return s.Send(sending, m)
		})
	}
	return group.Wait()
}

// CatchUp waits until the list of each tenant has every product that was sent.
func (l *Load) CatchUp(ctx context.Context) error {
	for _, t := range l.Tenants {
		for {
			var page struct {
				Meta struct {
					Total int `json:"total"`
				} `json:"meta"`
			}
			err := t.Read(ctx, "/api/products?limit=1", &page)
			if err == nil && page.Meta.Total == t.next {
				break
			}
			if waited := pause.For(ctx, 50*time.Millisecond); waited != nil {
				return fmt.Errorf("a list has %d of %d products: %w", page.Meta.Total, t.next, errors.Join(err, waited))
			}
		}
	}
	return nil
}
