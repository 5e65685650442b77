package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/price"
)

// bill is what a million of something cost in US dollars.
type bill struct {
	name                                 string
	table, gateway, lambda, queues, logs float64
}

// logDollars is the price of taking in so many bytes of logs for each of a
// million.
func logDollars(bytes float64) float64 { return bytes * price.Million / 1e9 * price.LogIngestion }

// What a delivered event is assumed to take of Lambda and SQS.
const (
	// receiverSeconds is how long a receiver takes to answer.
	receiverSeconds = 0.1
	// queueSteps are the requests of a message: it is sent, received and deleted,
	// as a record and as a delivery.
	queueSteps = 6
	// deliveryCPU is the service's processor time for an event: README, Measured.
	deliveryCPU = 1200 * time.Microsecond
	// aloneCPU is likewise for one that comes alone.
	aloneCPU = 7 * time.Millisecond
	// paceEvery is how often events come alone.
	paceEvery = 100 * time.Millisecond
)

// bill is the section of all that AWS charges for requests and deliveries.
func (b *bench) bill(ctx context.Context) error {
	if len(b.all) == 0 {
		if err := b.scattered(ctx); err != nil {
			return err
		}
	}
	t := b.table("All of a million", "table", "API Gateway", "Lambda", "SQS", "logs", "all in US dollars")
	t.rows[0] = append(t.rows[0][:1], t.rows[0][2:]...) // without targets
	t.note = fmt.Sprintf("List prices of us-east-1 as of %s, on demand, without free tiers: pkg/price names them and their pages. The table is measured, and so are the calls and processor time "+
		"behind Lambda's part of requests, and the bytes that they log. %s A delivered event is measured with its record and the lists; for it one invocation each of ingest, dispatcher, "+
		"indexer and worker is assumed, or a tenth where ten messages share one, %.1f ms of processor time (alone: %.0f ms), %.0f ms for the receiver's answer, 1 GB, and %d requests of SQS, in a group "+
		"each, or a tenth. Without storage, transfer, backups, alarms, WAF and access logs.",
		price.AsOf, lambdaNote(), deliveryCPU.Seconds()*1000, aloneCPU.Seconds()*1000, receiverSeconds*1000, queueSteps)
	deliveries, err := b.deliveryBills(ctx)
	if err != nil {
		return err
	}
	for _, one := range append(b.all, deliveries...) {
		cells := []string{one.name}
		for _, dollars := range []float64{one.table, one.gateway, one.lambda, one.queues, one.logs, one.table + one.gateway + one.lambda + one.queues + one.logs} {
			cells = append(cells, fmt.Sprintf("%.2f", dollars))
		}
		t.rows = append(t.rows, cells)
	}
	return nil
}

// deliveryBills are those of events that come together and of such that come
// alone.
func (b *bench) deliveryBills(ctx context.Context) ([]bill, error) {
	s, tenant, err := b.embeddedTenant(ctx)
	if err != nil {
		return nil, err
	}
	var bills []bill
	for _, way := range []struct {
		name  string
		share float64 // of an invocation and of a request of SQS
		cpu   time.Duration
		run   func() (events int, err error)
	}{
		{"delivered event, ten in a batch", 0.1, deliveryCPU, func() (int, error) {
			_, err := tenant.Flow(ctx, b.Events)
			return b.Events, err
		}},
		{"delivered event, alone", 1, aloneCPU, func() (int, error) {
			paced, err := tenant.Pace(ctx, paceEvery, func(n int) bool { return n < max(10, b.Events/20) })
			if err != nil {
				return 0, err
			}
			return paced.Sent, nil
		}},
	} {
		var events int
		uses, err := b.metering(func() (err error) {
			if events, err = way.run(); err != nil {
				return err
			}
			return s.Quiet(ctx)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		var all meter.Units
		for use, units := range uses {
			if use.Item != meter.StreamItem {
				all = all.Add(units)
			}
		}
		n := float64(events)
		seconds := way.cpu.Seconds() + way.share*receiverSeconds + float64(all.Calls)/n*callSeconds
		bills = append(bills, bill{
			name:   way.name,
			table:  all.Reads/n*price.ReadUnits + all.Writes/n*price.WriteUnits,
			lambda: 4*way.share*price.Invocations + price.Million*price.GigabyteSecondsArm64*seconds,
			queues: queueSteps * way.share * (price.QueueRequests + price.FairRequests),
		})
	}
	return bills, nil
}
