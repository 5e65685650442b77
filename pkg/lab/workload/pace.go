package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Latencies are those of all requests or events, in ascending order.
type Latencies []time.Duration

// Percentile is the latency within which p percent came: exact, of all of them.
func (l Latencies) Percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(l))+0.999999) - 1
	return l[max(0, min(rank, len(l)-1))]
}

// Paced is what became of events on a fixed schedule.
type Paced struct {
	Sent      int
	Latencies Latencies     // of those that arrived, from when their record was due
	Late      time.Duration // of the sender behind its schedule, at most
}

// Pace sends a new product each time, as long as more says so by their number
// so far, and waits until their events have arrived. It does not wait for one
// event before the next record, and counts from when a record was due: a sender
// that is held up does not hide that events wait. When events are missing it
// returns the others with the error.
func (t *Tenant) Pace(ctx context.Context, every time.Duration, more func(n int) bool) (*Paced, error) {
	t.Inbox.clear()
	p := &Paced{}
	due := map[value.ID]time.Time{}
	var mu sync.Mutex // guards what the senders write
	var failed error
	var group sync.WaitGroup
	started := time.Now()
	for n := 0; more(n); n++ {
		ids, bodies, err := t.newProducts(1)
		if err != nil {
			return nil, err
		}
		at := started.Add(time.Duration(n) * every)
		if pause.For(ctx, time.Until(at)) != nil {
			break
		}
		due[ids[0]] = at
		group.Go(func() {
			late := time.Since(at)
			err := t.service.send(ctx, t.ID, bodies...)
			mu.Lock()
			defer mu.Unlock()
			p.Late, failed = max(p.Late, late), errors.Join(failed, err)
		})
	}
	group.Wait()
	p.Sent = len(due)
	if err := errors.Join(failed, ctx.Err()); err != nil {
		return nil, err
	}
	err := t.Inbox.Await(ctx, p.Sent)
	_, arrivals := t.Inbox.Read()
	for id, at := range due {
		if arrived, ok := arrivals[id]; ok {
			p.Latencies = append(p.Latencies, arrived.Sub(at))
		} else if err == nil {
			err = fmt.Errorf("product %s was sent and its event did not arrive", id)
		}
	}
	slices.Sort(p.Latencies)
	return p, err
}

// Flow is events that went through as fast as they could.
type Flow struct {
	Mail
	Took time.Duration // from the first message to the last receipt
}

// Flow sends so many products as fast as the queue takes them, and waits until
// all of their events have arrived.
func (t *Tenant) Flow(ctx context.Context, events int) (*Flow, error) {
	t.Inbox.clear()
	started := time.Now()
	ids, err := t.Send(ctx, events)
	if err != nil {
		return nil, err
	}
	if err := t.Inbox.Await(ctx, events); err != nil {
		return nil, err
	}
	mail, arrivals := t.Inbox.Read()
	for _, id := range ids {
		if _, arrived := arrivals[id]; !arrived {
			return nil, fmt.Errorf("product %s was sent and its event did not arrive", id)
		}
	}
	return &Flow{mail, mail.Last.Sub(started)}, nil
}
