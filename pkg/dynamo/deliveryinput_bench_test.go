//go:build unix

package dynamo_test

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
	"github.com/commerce-integration/service/pkg/webhook"
)

// deliveries measures calls that deal with several deliveries at a time: time
// and write units per delivery, and what this process, which the table server
// is not part of, uses of the processor for each.
type deliveries struct {
	*measured
	e *webhook.Endpoint
}

func newDeliveries(b *testing.B) *deliveries {
	m := newMeasured(b)
	return &deliveries{m, makeEndpoint(m.org, value.NewID())}
}

func (d *deliveries) rows(n int) []*webhook.Delivery {
	rows := make([]*webhook.Delivery, n)
	for i := range rows {
		rows[i] = makeRow(d.org, d.e, "", value.TimeOf(time.Now()))
	}
	return rows
}

// run calls prepare, which is not measured, and do in turn.
func (d *deliveries) run(b *testing.B, each int, prepare, do func()) {
	b.ReportAllocs()
	d.meter.Reset()
	var used time.Duration
	writes := 0.0
	for b.Loop() {
		b.StopTimer()
		prepare()
		unitsBefore := d.meter.Total().Writes
		b.StartTimer()
		before := cputime.Used()
		do()
		used += cputime.Used() - before
		writes += d.meter.Total().Writes - unitsBefore
	}
	n := float64(b.N * each)
	b.ReportMetric(float64(used.Microseconds())/n, "cpu-µs/delivery")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "µs/delivery")
	b.ReportMetric(writes/n, "WCU/delivery")
}

func BenchmarkCreateRows(b *testing.B) {
	d := newDeliveries(b)
	var rows []*webhook.Delivery
	d.run(b, 25, func() { rows = d.rows(25) }, func() {
		if _, err := d.CreateDeliveries(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkPutPayloads(b *testing.B) {
	d := newDeliveries(b)
	body := encoded(b, orderEvent(b, d.org, 0))
	var payloads []webhook.Payload
	d.run(b, 25, func() {
		payloads = payloads[:0]
		for range 25 {
			payloads = append(payloads, webhook.Payload{OrganizationID: d.org, EventID: value.NewID(), Body: body})
		}
	}, func() {
		if err := d.PutPayloads(b.Context(), payloads); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkRecordOutcomes(b *testing.B) {
	d := newDeliveries(b)
	shard := emptyShard(0)
	var outcomes []webhook.DeliveryChange
	var shards []webhook.CounterShardWrite
	d.run(b, 10, func() {
		rows := d.rows(10)
		if _, err := d.CreateDeliveries(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
		outcomes, shards = manyOutcomes(rows, shard, true, value.TimeOf(time.Now()))
		shard.Revision, shard.Shard = shard.Revision+1, shards[0].Next
	}, func() {
		if clash, err := d.RecordOutcomes(b.Context(), outcomes, shards); clash != nil || err != nil {
			b.Fatal(clash, err)
		}
	})
}

func BenchmarkDeliveries(b *testing.B) {
	d := newDeliveries(b)
	body := encoded(b, orderEvent(b, d.org, 0))
	app := newApplication(b, d.Table, d.org)
	d.e = newEndpoint(b, d.Table, d.org, app)
	var refs []webhook.DeliveryRef
	d.run(b, 10, func() {
		rows := d.rows(10)
		if _, err := d.CreateDeliveries(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
		refs = refs[:0]
		var payloads []webhook.Payload
		for _, r := range rows {
			refs = append(refs, r.Ref())
			payloads = append(payloads, webhook.Payload{OrganizationID: d.org, EventID: r.EventID, Body: body})
		}
		if err := d.PutPayloads(b.Context(), payloads); err != nil {
			b.Fatal(err)
		}
	}, func() {
		if _, err := d.DeliveryInputs(b.Context(), refs); err != nil {
			b.Fatal(err)
		}
	})
}
