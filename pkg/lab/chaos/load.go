package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// sample is a record to be put once, and the events that the documentation promises for it.
type sample struct {
	kind   commerce.Kind
	fields string // JSON members
	events string
}

var samples = []sample{
	{
		commerce.KindOrder, `"orderNumber":"A-1","currency":"EUR","status":"CONFIRMED","paymentStatus":"PAID","items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]`,
		"order.created order.confirmed order.paid payment.completed",
	},
	{
		commerce.KindOrder, `"orderNumber":"A-2","currency":"EUR","status":"COMPLETED","fulfillmentStatus":"SHIPPED","items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]`,
		"order.created order.confirmed order.completed order.fulfilled order.shipped",
	},
	{
		commerce.KindInvoice, `"invoiceNumber":"I-1","currency":"EUR","status":"PAID","lines":[{"description":"Tea","quantity":2,"unitPrice":9.9}]`,
		"invoice.created invoice.issued invoice.paid",
	},
	{commerce.KindProduct, `"name":"Tea"`, "product.created"},
	{commerce.KindCustomer, `"firstName":"Ada"`, "customer.created"},
}

// put is a record that was sent.
type put struct {
	kind   commerce.Kind
	id     value.ID
	events []string
	calm   bool // after the faults
}

// message draws the next message of one to twenty records, which have so many events at most and a few.
func (r *run) message(random *rand.Rand, missing int) (*tenant, workload.Message, []put) {
	const most = 20
	t := r.tenants[random.IntN(len(r.tenants))]
	m, puts := workload.Message{Organization: t.ID}, []put{}
	for n := 1 + random.IntN(most); n > 0 && missing > 0; n-- {
		s, id := samples[random.IntN(len(samples))], value.NewID()
		record, events := jsontext.Value(fmt.Sprintf(`{"id":%q,%s}`, id, s.fields)), strings.Fields(s.events)
		m.Records = append(m.Records, map[string]any{"kind": s.kind, "op": commerce.OpPut, "version": 1, "record": record})
		puts = append(puts, put{s.kind, id, events, r.calm})
		missing -= len(events)
	}
	return t, m, puts
}

// load sends messages evenly over the time, or without a pause when it is late, until so many events are sent in all.
// One message in ten is sent twice, and one in ten late.
func (r *run) load(ctx context.Context, events int, within time.Duration) error {
	started, random := time.Now(), r.random(uint64(events)) //nolint:gosec // positive
	for r.sent < events {
		due := time.Duration(float64(within) * float64(r.sent) / float64(events))
		if err := pause.For(ctx, due-time.Since(started)); err != nil {
			return err
		}
		t, m, puts := r.message(random, events-r.sent)
		times := 1
		switch random.IntN(10) {
		case 0:
			times = 2
		case 1:
			m.Delay = 1 + random.Int32N(15)
		}
		for range times {
			if err := r.send(ctx, m); err != nil {
				return err
			}
		}
		t.puts = append(t.puts, puts...)
		for _, p := range puts {
			r.sent += len(p.events)
		}
	}
	return nil
}

// send repeats until the queue, which dies with the service, has acknowledged the message.
func (r *run) send(ctx context.Context, m workload.Message) error {
	const timeout, interval = 2 * time.Second, 50 * time.Millisecond
	for {
		trying, cancel := context.WithTimeout(ctx, timeout)
		err := r.service.Send(trying, m)
		cancel()
		if err == nil {
			return nil
		}
		if err := pause.For(ctx, interval); err != nil {
			return err
		}
	}
}
