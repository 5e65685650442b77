package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
		commerce.KindOrder,
		`"orderNumber":"A-1","currency":"EUR","status":"COMPLETED","paymentStatus":"PAID","fulfillmentStatus":"SHIPPED","items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]`,
		"order.created order.confirmed order.completed order.paid payment.completed order.fulfilled order.shipped",
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
}

// draw draws messages of one to twenty records, which have so many events. One message in ten is sent twice, and one in
// ten late.
func (r *run) draw(random *rand.Rand, events int) (messages []workload.Message) {
	for missing := events; missing > 0; {
		t := r.tenants[random.IntN(len(r.tenants))]
		m := workload.Message{Organization: t.ID}
		for n := 1 + random.IntN(20); n > 0 && missing > 0; n-- {
			s, id := samples[random.IntN(len(samples))], value.NewID()
			p := put{s.kind, id, strings.Fields(s.events)}
			record := jsontext.Value(fmt.Sprintf(`{"id":%q,%s}`, id, s.fields))
			m.Records = append(m.Records, map[string]any{"kind": s.kind, "op": commerce.OpPut, "version": 1, "record": record})
			t.puts = append(t.puts, p)
			missing -= len(p.events)
		}
		switch random.IntN(10) {
		case 0:
			messages = append(messages, m)
		case 1:
			m.Delay = 1 + random.Int32N(15)
		}
		messages = append(messages, m)
	}
	return messages
}
