package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
)

// sample is a record to be put once, and what the documentation says that this
// means.
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
	of     *organization
	kind   commerce.Kind
	id     value.ID
	events []string
}

// load sends records until they mean as many events as are wanted.
type load struct {
	random *rand.Rand
	orgs   []*organization
	want   int // events

	mu     sync.Mutex
	puts   []put
	events int // that the records sent so far mean
}

// sent returns how many events the records sent so far mean.
func (l *load) sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}

func (l *load) done() bool { return l.sent() >= l.want }

// message draws the next message of one to twenty records.
func (l *load) message() (body, group string, records []put) {
	const most = 20
	o := l.orgs[l.random.IntN(len(l.orgs))]
	all := samples()
	missing := l.want - l.sent()
	var entries []map[string]any
	for n := 1 + l.random.IntN(most); n > 0 && missing > 0; n-- {
		s := all[l.random.IntN(len(all))]
		record := map[string]any{"id": value.NewID()}
		for name, v := range s.fields {
			record[name] = v
		}
		entries = append(entries, map[string]any{"kind": s.kind, "op": "put", "version": 1, "record": record})
		records = append(records, put{o, s.kind, record["id"].(value.ID), s.events}) //nolint:forcetypeassert // set above
		missing -= len(s.events)
	}
	text, err := json.Marshal(map[string]any{"organizationId": o.id, "records": entries})
	if err != nil {
		panic(fmt.Sprintf("a message of texts and numbers that is no JSON: %v", err))
	}
	return string(text), o.id.String(), records
}

// run sends the messages spread over the time, or as soon as they may in what
// is left of it. A message counts as sent when the queue has acknowledged it,
// however often it takes; one in ten is sent twice and one in ten late.
func (l *load) run(ctx context.Context, queue func() (*sqs.Client, string), within time.Duration) error {
	started := time.Now()
	for !l.done() {
		if due := time.Duration(float64(within) * float64(l.sent()) / float64(l.want)); time.Since(started) < due {
			if err := pause.For(ctx, due-time.Since(started)); err != nil {
				return err
			}
		}
		body, group, records := l.message()
		draw := l.random.IntN(10)
		times, delay := 1, int32(0)
		switch draw {
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
		l.add(records)
	}
	return nil
}

func (l *load) add(records []put) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.puts = append(l.puts, records...)
	for _, p := range records {
		l.events += len(p.events)
	}
}

// send repeats until the queue has acknowledged the message: it goes away with
// the service.
func send(ctx context.Context, queue func() (*sqs.Client, string), body, group string, delay int32) error {
	const patience, interval = 2 * time.Second, 50 * time.Millisecond
	for {
		client, url := queue()
		trying, cancel := context.WithTimeout(ctx, patience)
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

// newQueues is a client of a local queue server, which tries each call once.
func newQueues(endpoint string) *sqs.Client {
	return sqs.NewFromConfig(runner.AWSConfig(), func(o *sqs.Options) { o.BaseEndpoint, o.Retryer = &endpoint, aws.NopRetryer{} })
}
