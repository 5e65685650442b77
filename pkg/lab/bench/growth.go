package bench

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/compactor"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/lists/indexer"
	"github.com/commerce-integration/service/pkg/lists/views"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/value"
)

// plantTable is a table beside the service's, so that neither the service's
// stream nor its jobs have to do with what is measured in it.
const plantTable = "commerce-bench"

// plant is an organization's list of orders, with the real indexer, jobs and
// views over a real table, and a clock that is moved by hand.
type plant struct {
	table  *dynamo.Table
	meter  *meter.Meter
	org    value.ID
	orders *orders
	list   *index.List
	now    time.Time
	jobs   bool // whether one was started
}

// newPlant makes an empty list of which the orders lie in the 24 months before
// now.
func (b *bench) newPlant(ctx context.Context, count int) (*plant, error) {
	s, err := b.service(ctx)
	if err != nil {
		return nil, err
	}
	model, err := template.Load(b.cfg.Template, map[string]string{"JwtIssuer": "bench", "JwtAudience": "bench"})
	if err != nil {
		return nil, err
	}
	declared := model.Table
	declared.StreamView = ""
	if _, err := provision.Table(ctx, s.client, declared, plantTable); err != nil {
		return nil, fmt.Errorf("make a table: %w", err)
	}
	now := time.Now().UTC()
	p := &plant{meter: meter.New(), org: value.NewID(), now: now}
	p.table = dynamo.New(dynamodb.New(s.client.Options(), p.meter.Measure), plantTable, p.clock)
	p.orders = newOrders(count, value.TimeOf(now.AddDate(0, -24, 0)), value.TimeOf(now))
	list := *index.NewLists(p.table, dynamo.Shards).Records[commerce.KindOrder]
	list.Shards, list.Read = 1, p.read
	p.list = &list
	return p, nil
}

func (p *plant) clock() time.Time { return p.now }

// Send implements [index.Starter].
func (p *plant) Send(context.Context, value.ID, string) error {
	p.jobs = true
	return nil
}

// Park implements [indexer.Parker]: nothing is to be parked.
func (p *plant) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	return cause
}

// read gives a rebuild the orders that the table would hold.
func (p *plant) read(_ context.Context, _ value.ID, _ int, after string) (documents []columnar.Document, next string, err error) {
	const page = 1000
	from := 0
	if after != "" {
		if from, err = strconv.Atoi(after); err != nil {
			return nil, "", err
		}
	}
	for n := from; n < min(from+page, p.orders.count); n++ {
		documents = append(documents, p.orders.document(n, 0))
	}
	if from+page < p.orders.count {
		next = strconv.Itoa(from + page)
	}
	return documents, next, nil
}

func (p *plant) maintainer() *compactor.Compactor {
	return compactor.New(p.table, []*index.List{p.list}, p.clock, slog.New(slog.DiscardHandler))
}

func (p *plant) views() *views.Cache {
	return views.NewCache(p.table, views.Config{MaxBytes: 1 << 30, Clock: p.clock, Start: p})
}

// run does jobs as long as there is something to do.
func (p *plant) run(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = p.maintainer().Run(ctx, p.org, p.list.Name); err != nil {
			return err
		}
	}
	return nil
}

// settle lets time pass until nothing is due any more: the last folds are
// made and quiet months sealed.
func (p *plant) settle(ctx context.Context) error {
	for range 4 {
		p.now = p.now.Add(8 * 24 * time.Hour)
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill makes the whole index at once, as commerce reindex does.
func (p *plant) fill(ctx context.Context) error {
	if err := ops.Rebuild(ctx, p.table, p.maintainer(), index.Key{Org: p.org, List: p.list}, func(int, int) {}); err != nil {
		return fmt.Errorf("make an index of %d orders: %w", p.orders.count, err)
	}
	return p.settle(ctx)
}

// write gives the indexer batches of changes as the stream does, some time
// apart, and does the jobs that it starts.
func (p *plant) write(ctx context.Context, batches [][]int, every time.Duration) error {
	revision := value.Time(0)
	decode := func(r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		n, err := strconv.Atoi(r.EventID)
		if err != nil {
			return nil, err
		}
		d := p.orders.document(n, revision)
		return indexer.Changes(p.org, p.list, d.Revision, nil, &d), nil
	}
	writer := indexer.New(p.table, decode, p, p, slog.New(slog.DiscardHandler))
	for _, numbers := range batches {
		revision++
		var batch events.DynamoDBEvent
		for _, n := range numbers {
			batch.Records = append(batch.Records, events.DynamoDBEventRecord{EventID: strconv.Itoa(n)})
		}
		answer, err := writer.Handle(ctx, batch)
		if err == nil && len(answer.BatchItemFailures) > 0 {
			err = fmt.Errorf("%d batches failed", len(answer.BatchItemFailures))
		}
		if err != nil {
			return fmt.Errorf("index %d changes: %w", len(numbers), err)
		}
		p.now = p.now.Add(every)
		if !p.jobs {
			continue
		}
		p.jobs = false
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measureGrowth is the section of what lists cost at all sizes.
func measureGrowth(ctx context.Context, b *bench) error {
	t := b.table("Lists of orders of 24 months, by their number, from the table", "read units", "calls", "CPU", "finds")
	t.note = "The index alone, without the records of the page. Older months are sealed, the current one has just changed. " +
		"A warm list is asked once a second and follows the tail each time."
	for _, count := range powers(b.cfg.Orders) {
		b.progress("an index of %s orders …", thousands(count))
		if err := b.measureSize(ctx, t, count); err != nil {
			return err
		}
	}
	return nil
}

// powers are those of ten from 1,000 to the number.
func powers(most int) (all []int) {
	for n := 1000; n < most; n *= 10 {
		all = append(all, n)
	}
	return append(all, most)
}

func (b *bench) measureSize(ctx context.Context, t *table, count int) error {
	p, err := b.newPlant(ctx, count)
	if err != nil {
		return err
	}
	end := p.now
	if err := p.fill(ctx); err != nil {
		return err
	}
	p.now = end.Add(time.Hour)
	newest := make([]int, min(100, count/24))
	for i := range newest {
		newest[i] = count - 1 - i
	}
	if err := p.write(ctx, [][]int{newest}, time.Second); err != nil {
		return err
	}
	for _, row := range []struct{ about, parameters, target string }{
		{"cold, default list, page 1", "", "≤ 30 ms CPU"},
		{"cold, one status", "status=PENDING", ""},
		{"cold, search", "search=klara", ""},
	} {
		if row.target != "" && count < 1_000_000 {
			row.target = ""
		}
		if err := p.cold(ctx, t, thousands(count)+" orders: "+row.about, row.parameters, row.target); err != nil {
			return err
		}
	}
	return p.warm(ctx, t, thousands(count)+" orders: warm, default list")
}

// cold measures the first list of an instance.
func (p *plant) cold(ctx context.Context, t *table, about, parameters, target string) error {
	q, err := query(commerce.KindOrder, parameters)
	if err != nil {
		return err
	}
	var found columnar.Result
	p.meter.Reset()
	cpu := busy(func() {
		if err == nil {
			found, err = p.views().Query(ctx, p.org, p.list, q)
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", about, err)
	}
	if len(found.Hits) == 0 {
		return fmt.Errorf("%s: nothing was found", about)
	}
	used := p.meter.Total()
	t.add(about, target, amount(used.Reads/microRounds), amount(float64(used.Calls)/microRounds), milliseconds(cpu), thousands(found.Total))
	return nil
}

// warm measures a list that is asked once a second.
func (p *plant) warm(ctx context.Context, t *table, about string) error {
	const asked = 20
	q, err := query(commerce.KindOrder, "")
	if err != nil {
		return err
	}
	cache := p.views()
	if _, err := cache.Query(ctx, p.org, p.list, q); err != nil {
		return fmt.Errorf("%s: %w", about, err)
	}
	p.meter.Reset()
	for range asked {
		p.now = p.now.Add(views.Freshness)
		if _, err := cache.Query(ctx, p.org, p.list, q); err != nil {
			return fmt.Errorf("%s: %w", about, err)
		}
	}
	used := p.meter.Total()
	t.add(about, "read units as with 1,000", amount(used.Reads/asked), amount(float64(used.Calls)/asked), "", "")
	return nil
}

// measureWrites is the section of what keeping the index costs.
func measureWrites(ctx context.Context, b *bench) error {
	t := b.table("Index of an order, for each change", unitColumns()...)
	t.note = "Tail, folds, merges, replaced chunks, manifests, counts and jobs together, from an empty list on until nothing is left to do."
	many := max(2_000, b.cfg.Orders/10)
	few := max(400, b.cfg.Orders/100)
	for _, row := range []struct {
		about   string
		size    int
		records int
		among   int
		every   time.Duration
		target  string
	}{
		{"added, in batches of 500", 500, many, many, time.Second, "≤ 1 write unit"},
		{"added, in batches of 100", 100, many, many, time.Second, "≤ 1 write unit"},
		{"changed, in batches of 100, in any month", 100, many, many / 5, time.Second, "≤ 1 write unit"},
		{"added, one a minute", 1, few, few, time.Minute, "≤ 4 write units"},
		{"changed, one a minute, in any month", 1, few, few / 2, time.Minute, "≤ 4 write units"},
	} {
		b.progress("%s …", row.about)
		p, err := b.newPlant(ctx, row.among)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same on every run
		var batches [][]int
		for n := 0; n < row.records; n += row.size {
			batch := make([]int, 0, row.size)
			for i := n; i < min(n+row.size, row.records); i++ {
				if row.among < row.records {
					batch = append(batch, random.IntN(row.among))
				} else {
					batch = append(batch, i)
				}
			}
			batches = append(batches, batch)
		}
		if err := p.write(ctx, batches, row.every); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
		used := share("index of an order "+row.about, p.meter.Uses(), float64(row.records))
		b.keep(t, row.target, used)
	}
	return nil
}
