package index_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// meteredHarness is an index whose table tells what it consumes.
type meteredHarness struct {
	table *dynamo.Table
	meter *faults.Meter
	lists *index.Lists
	org   value.ID
	now   time.Time
	jobs  map[string]bool // lists of which a job was started
	years int             // that orders are spread over; 0 means 2
}

func newMeteredHarness(b *testing.B) *meteredHarness {
	b.Helper()
	p := &meteredHarness{meter: faults.NewMeter(), org: value.NewID(), now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), jobs: map[string]bool{}}
	client, name := dynamotest.Client(b)
	p.table = dynamo.New(dynamodb.New(client.Options(), p.meter.Measure), name, p.clock)
	p.lists = index.NewLists(p.table, dynamo.Shards)
	return p
}

func (p *meteredHarness) clock() time.Time { return p.now }

func (p *meteredHarness) Send(_ context.Context, _ value.ID, list string) error {
	p.jobs[list] = true
	return nil
}

func (p *meteredHarness) compactor() *compactor.Compactor {
	return compactor.New(p.table, p.lists.All(), p.clock, slog.New(slog.DiscardHandler))
}

// order is the n-th of so many orders over years, the newest now.
func (p *meteredHarness) order(n, of int, revision int64) columnar.Document {
	r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // data of a benchmark
	schema := p.lists.Records[commerce.KindOrder].Schema
	first := p.now.AddDate(-cmp.Or(p.years, 2), 0, 0)
	placed := first.UnixMilli() + int64(n)*(p.now.Sub(first).Milliseconds()/int64(of))
	var id, customer [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(placed)<<16|0x7000|r.Uint64N(4096)) //nolint:gosec // after 1970
	binary.BigEndian.PutUint64(id[8:], r.Uint64()|1<<63)
	binary.BigEndian.PutUint64(customer[:], r.Uint64N(100_000)*0x9e3779b97f4a7c15)
	b := schema.Build(id, 0)
	col := schema.Col
	b.Keyword(col("siteId"), strconv.Itoa(r.IntN(5))).Keyword(col("status"), []string{"PENDING", "CONFIRMED", "COMPLETED"}[r.IntN(3)])
	b.Keyword(col("paymentStatus"), []string{"UNPAID", "PAID"}[r.IntN(2)]).Keyword(col("fulfillmentStatus"), "FULFILLED")
	b.Keyword(col("customerId"), string(customer[:])).Keyword(col("currency"), "EUR")
	b.Text(col("orderNumber"), fmt.Sprintf("SO-%07d", n)).Text(col("customerName"), "Customer "+strconv.Itoa(r.IntN(100_000)))
	b.Text(col("customerEmail"), fmt.Sprintf("customer%d@example.com", r.IntN(100_000)))
	b.Number(col("total"), r.Int64N(100_000)*100).Time(col("placedAt"), placed).Time(col("createdAt"), placed)
	b.Time(col("updatedAt"), placed+revision)
	return b.Document(placed+revision, placed+revision+300)
}

// BenchmarkWriteUnits measures what keeping the index costs for each changed
// record: the tail, folds, merges, manifests, counts and jobs together, from
// an empty list on.
func BenchmarkWriteUnits(b *testing.B) {
	for _, row := range []struct {
		name    string
		batch   int
		records int // written; each is the change of one of as many as named
		among   int
		every   time.Duration // between batches
	}{
		{"batches of 500, added", 500, 200_000, 200_000, time.Second},
		{"batches of 100, added", 100, 100_000, 100_000, time.Second},
		{"batches of 100, changed", 100, 100_000, 20_000, time.Second},
		{"one at a time, added", 1, 10_000, 10_000, time.Minute},
		{"one at a time, changed in any month", 1, 10_000, 5_000, time.Minute},
	} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				p := newMeteredHarness(b)
				p.write(b, row.batch, row.records, row.among, row.every)
				p.drain(b)
				units := p.meter.Total()
				b.ReportMetric(units.Writes/float64(row.records), "WCU/record")
				b.ReportMetric(units.Reads/float64(row.records), "RCU/record")
				b.ReportMetric((units.Writes*0.625+units.Reads*0.125)/float64(row.records), "USD/million") // on demand in us-east-1
			}
		})
	}
}

type unparked struct{ b *testing.B }

func (u unparked) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	u.b.Errorf("a record was parked: %v", cause)
	return nil
}

// write feeds a writer with changes of orders, and does the jobs that it starts.
func (p *meteredHarness) write(b *testing.B, batch, records, among int, every time.Duration) {
	list, random := p.lists.Records[commerce.KindOrder], rand.New(rand.NewPCG(1, 2)) //nolint:gosec // as above
	n := 0
	decode := func(_ context.Context, r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		order, err := strconv.Atoi(r.EventID)
		if err != nil {
			return nil, err
		}
		d := p.order(order, among, int64(n))
		return indexer.Changes(p.org, list, d.Revision, nil, &d), nil
	}
	writer, maintainer := indexer.New(p.table, decode, unparked{b}, p, slog.New(slog.DiscardHandler)), p.compactor()
	for n < records {
		var e events.DynamoDBEvent
		for range batch {
			order := n
			if among < records {
				order = random.IntN(among)
			}
			e.Records = append(e.Records, events.DynamoDBEventRecord{EventID: strconv.Itoa(order)})
			n++
		}
		if answer, err := writer.Handle(b.Context(), e); err != nil || len(answer.BatchItemFailures) > 0 {
			b.Fatalf("write: %v, %v", answer, err)
		}
		p.now = p.now.Add(every)
		if p.jobs[list.Name] {
			delete(p.jobs, list.Name)
			p.run(b, maintainer, list)
		}
	}
}

func (p *meteredHarness) run(b *testing.B, m *compactor.Compactor, list *index.List) {
	for more := true; more; {
		var err error
		if more, err = m.Run(b.Context(), p.org, list.Name); err != nil {
			b.Fatal(err)
		}
	}
}

// drain does the jobs that are due later: the last fold and the last counts.
func (p *meteredHarness) drain(b *testing.B) {
	list, m := p.lists.Records[commerce.KindOrder], p.compactor()
	for range 3 {
		p.now = p.now.Add(7 * 24 * time.Hour)
		p.run(b, m, list)
	}
}
