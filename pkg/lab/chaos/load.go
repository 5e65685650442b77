package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// sample is a record to be put once, and the events that the documentation promises for it.
type sample struct {
	kind   commerce.Kind
	fields map[string]any
	events []string
}

func samples() []sample {
	items := []map[string]any{{"name": "Tea", "quantity": 2, "unitPrice": 9.9}}
	lines := []map[string]any{{"description": "Tea", "quantity": 2, "unitPrice": 9.9}}
	return []sample{
		{
			commerce.KindOrder,
			map[string]any{"orderNumber": "A-1", "currency": "EUR", "status": "CONFIRMED", "paymentStatus": "PAID", "items": items},
			[]string{"order.created", "order.confirmed", "order.paid", "payment.completed"},
		},
		{
			commerce.KindOrder,
			map[string]any{"orderNumber": "A-2", "currency": "EUR", "status": "COMPLETED", "fulfillmentStatus": "SHIPPED", "items": items},
			[]string{"order.created", "order.confirmed", "order.completed", "order.fulfilled", "order.shipped"},
		},
		{
			commerce.KindInvoice,
			map[string]any{"invoiceNumber": "I-1", "currency": "EUR", "status": "PAID", "lines": lines},
			[]string{"invoice.created", "invoice.issued", "invoice.paid"},
		},
		{commerce.KindProduct, map[string]any{"name": "Tea"}, []string{"product.created"}},
		{commerce.KindCustomer, map[string]any{"firstName": "Ada"}, []string{"customer.created"}},
	}
}

// put is a record that was sent.
type put struct {
	of     *tenant
	kind   commerce.Kind
	id     value.ID
	events []string
	calm   bool // after the faults
}

// load sends records.
type load struct {
	random  *rand.Rand
	tenants []*tenant
	service *workload.Service
	calm    bool
	puts    []put
	events  atomic.Int64 // of the records sent so far
}

func (l *load) sent() int { return int(l.events.Load()) }

// message draws the next message of one to twenty records, which have so many events at most and a few.
func (l *load) message(missing int) (m workload.Mail, puts []put, err error) {
	const most = 20
	t := l.tenants[l.random.IntN(len(l.tenants))]
	all := samples()
	var changes []map[string]any
	for n := 1 + l.random.IntN(most); n > 0 && missing > 0; n-- {
		s, id := all[l.random.IntN(len(all))], value.NewID()
		record := map[string]any{"id": id}
		maps.Copy(record, s.fields)
		changes = append(changes, map[string]any{"kind": s.kind, "op": commerce.OpPut, "version": 1, "record": record})
		puts = append(puts, put{t, s.kind, id, s.events, l.calm})
		missing -= len(s.events)
	}
	m, err = workload.Message(t.ID, changes...)
	return m, puts, err
}

// run sends messages evenly over the time, or without a pause when it is late, until so many events are sent in all.
// One message in ten is sent twice, and one in ten late.
func (l *load) run(ctx context.Context, events int, within time.Duration) error {
	started := time.Now()
	for sent := l.sent(); sent < events; sent = l.sent() {
		if due := time.Duration(float64(within) * float64(sent) / float64(events)); time.Since(started) < due {
			if err := pause.For(ctx, due-time.Since(started)); err != nil {
				return err
			}
		}
		m, puts, err := l.message(events - sent)
		if err != nil {
			return err
		}
		times := 1
		switch l.random.IntN(10) {
		case 0:
			times = 2
		case 1:
			m.Delay = 1 + l.random.Int32N(15)
		}
		for range times {
			if err := l.send(ctx, m); err != nil {
				return err
			}
		}
		l.puts = append(l.puts, puts...)
		for _, p := range puts {
			l.events.Add(int64(len(p.events)))
		}
	}
	return nil
}

// send repeats until the queue, which dies with the service, has acknowledged the message.
func (l *load) send(ctx context.Context, m workload.Mail) error {
	const timeout, interval = 2 * time.Second, 50 * time.Millisecond
	for {
		trying, cancel := context.WithTimeout(ctx, timeout)
		err := l.service.Send(trying, m)
		cancel()
		if err == nil {
			return nil
		}
		if err := pause.For(ctx, interval); err != nil {
			return err
		}
	}
}
