package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// sample is a record to be put once, and the events that the documentation
// promises for it.
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
			commerce.KindOrder,
			map[string]any{"orderNumber": "A-3", "currency": "EUR", "status": "CANCELLED", "items": items},
			[]string{"order.created", "order.cancelled"},
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
}

// load sends records until their events are as many as are wanted.
type load struct {
	random  *rand.Rand
	tenants []*tenant
	want    int // events

	mu     sync.Mutex
	puts   []put
	events int // of the records sent so far
}

// sent returns how many events the records sent so far have.
func (l *load) sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}

// message draws the next message of one to twenty records.
func (l *load) message() (body, group string, puts []put) {
	const most = 20
	t := l.tenants[l.random.IntN(len(l.tenants))]
	all := samples()
	missing := l.want - l.sent()
	var records []map[string]any
	for n := 1 + l.random.IntN(most); n > 0 && missing > 0; n-- {
		s, id := all[l.random.IntN(len(all))], value.NewID()
		record := map[string]any{"id": id}
		maps.Copy(record, s.fields)
		records = append(records, map[string]any{"kind": s.kind, "op": "put", "version": 1, "record": record})
		puts = append(puts, put{t, s.kind, id, s.events})
		missing -= len(s.events)
	}
	text, err := json.Marshal(map[string]any{"organizationId": t.ID, "records": records})
	if err != nil {
		panic(fmt.Sprintf("a message of texts and numbers that is no JSON: %v", err))
	}
	return string(text), t.ID.String(), puts
}

// run sends the messages evenly over the time, or without a pause when it is
// late. A message counts as sent when the queue has acknowledged it, however
// often that is tried. One in ten is sent twice and one in ten late.
func (l *load) run(ctx context.Context, queue func() (*sqs.Client, string), within time.Duration) error {
	started := time.Now()
	for sent := 0; sent < l.want; sent = l.sent() {
		if due := time.Duration(float64(within) * float64(sent) / float64(l.want)); time.Since(started) < due {
			if err := pause.For(ctx, due-time.Since(started)); err != nil {
				return err
			}
		}
		body, group, puts := l.message()
		times, delay := 1, int32(0)
		switch l.random.IntN(10) {
		case 0:
			times = 2
		case 1:
			delay = 1 + l.random.Int32N(15)
		}
		for range times {
			if err := send(ctx, queue, body, group, delay); err != nil {
				return err
			}
		}
		l.add(puts)
	}
	return nil
}

func (l *load) add(puts []put) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.puts = append(l.puts, puts...)
	for _, p := range puts {
		l.events += len(p.events)
	}
}

// send repeats until the queue, which dies with the service, has acknowledged
// the message.
func send(ctx context.Context, queue func() (*sqs.Client, string), body, group string, delay int32) error {
	const timeout, interval = 2 * time.Second, 50 * time.Millisecond
	for {
		client, url := queue()
		trying, cancel := context.WithTimeout(ctx, timeout)
		_, err := client.SendMessage(trying, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, DelaySeconds: delay})
		cancel()
		if err == nil {
			return nil
		}
		if err := pause.For(ctx, interval); err != nil {
			return err
		}
	}
}
