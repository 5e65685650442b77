package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/price"
)

// spent is what one request or change uses of the table: units by kind of item.
type spent struct {
	name          string
	reads, writes map[string]float64
}

// share divides the units that requests and changes used among so many. What the
// schedule does in the same time, due jobs and retries, is not part of them.
func share(name string, uses map[meter.Use]meter.Units, among float64, kinds ...string) spent {
	s := spent{name: name, reads: map[string]float64{}, writes: map[string]float64{}}
	for use, units := range uses {
		// Asking for a job is part of a change; reading which jobs are due is not.
		if !slices.Contains(kinds, use.Item) && (use.Item != meter.JobItem || use.Operation == "Query") {
			continue
		}
		if units.Reads > 0 {
			s.reads[use.Item] += units.Reads / among
		}
		if units.Writes > 0 {
			s.writes[use.Item] += units.Writes / among
		}
	}
	return s
}

// changeKinds are the kinds of item that a change is about, and requestKinds
// those of a request.
func changeKinds() []string {
	return []string{meter.RecordItem, meter.TailItem, meter.ManifestItem, meter.ChunkItem, meter.ActivityItem}
}

func requestKinds() []string {
	return append(changeKinds(), meter.RateItem, meter.KeyItem, meter.ApplicationItem)
}

func total(units map[string]float64) (sum float64) {
	for _, n := range units {
		sum += n
	}
	return sum
}

// dollars is what a million of it costs of the table.
func (s *spent) dollars() float64 {
	return total(s.reads)*price.ReadUnits + total(s.writes)*price.WriteUnits
}

func (s *spent) cells() []string {
	return []string{amount(total(s.reads)), byKind(s.reads), amount(total(s.writes)), byKind(s.writes)}
}

// byKind tells what units are for, the most first.
func byKind(units map[string]float64) string {
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		return cmp.Or(cmp.Compare(units[b], units[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, kind+" "+amount(units[kind]))
	}
	return strings.Join(parts, ", ")
}

// units is the section of what requests and changes use of the table.
func (b *bench) units(ctx context.Context) error {
	s, err := b.stocked(ctx)
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("Units of the table for one request or change, %s products", thousands(s.products)), "read units", "of them", "write units", "of them")
	t.note = "As the table tells them, leases and what is read when an instance begins included. A read unit is 4 KB read strongly consistent, a write unit 1 KB."
	if err := b.busyList(ctx, s, t); err != nil {
		return err
	}
	seconds := max(2, int(4*b.Duration/time.Second))
	const uncached = 50
	for _, row := range []struct {
		name  string
		kinds []string
		run   func() (requests int, err error)
	}{
		{"list, warm, one request a second", requestKinds(), func() (int, error) { return seconds, s.askEachSecond(ctx, seconds) }},
		{"list, 20 records that no cache has", requestKinds(), func() (int, error) { return uncached, s.askUncached(ctx, uncached) }},
		{"record by id", requestKinds(), func() (int, error) {
			outcome, err := b.ask(ctx, s, s.itemTargets(), "identity", checkItem)
			return outcome.all, err
		}},
		{"product changed, in batches of 100", changeKinds(), func() (int, error) { return s.change(ctx, max(2, seconds/2), 100) }},
	} {
		var n int
		uses, err := b.metering(func() (err error) {
			n, err = row.run()
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		b.keep(t, share(row.name, uses, float64(n), row.kinds...))
	}
	return nil
}

// keep adds a figure and remembers it for the costs.
func (b *bench) keep(t *table, s spent) {
	b.spent = append(b.spent, s)
	t.add(s.name, "", s.cells()...)
}

// busyList asks for a list as fast as it goes. It then reads and writes by time,
// not by request, so the figure is also told by the second.
func (b *bench) busyList(ctx context.Context, s *shop, t *table) error {
	targets := []string{"/api/products"}
	if _, err := b.ask(ctx, s, targets, "identity", checkPage); err != nil { // fills the caches
		return err
	}
	var outcome *Outcome
	started := time.Now()
	uses, err := b.metering(func() (err error) {
		outcome, err = b.ask(ctx, s, targets, "identity", checkPage)
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("list, warm, %s a second: in each second", thousands(int(outcome.PerSecond())))
	second := share(name, uses, time.Since(started).Seconds(), requestKinds()...)
	t.add(name, "one read of the tail, no record; leases", second.cells()...)
	b.keep(t, share("list, warm, so many a second", uses, float64(outcome.all), requestKinds()...))
	return nil
}

// askEachSecond has each request pay for what a second costs.
func (s *shop) askEachSecond(ctx context.Context, seconds int) error {
	for range seconds {
		if err := pause.For(ctx, time.Second); err != nil {
			return err
		}
		if _, err := s.total(ctx, "/api/products"); err != nil {
			return err
		}
	}
	return nil
}

// askUncached asks for pages of records that nobody has asked for: by SKU, from
// the last, where no other section goes.
func (s *shop) askUncached(ctx context.Context, pages int) error {
	for page := range pages {
		path := fmt.Sprintf("/api/products?orderBy=sku&orderDirection=desc&page=%d", s.products/20/2+page)
		if _, err := s.total(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// change sends changes in batches, and the next when the last is indexed.
func (s *shop) change(ctx context.Context, batches, size int) (changes int, err error) {
	version := int(time.Now().Unix())
	for i := range batches {
		if err := s.send(ctx, i*size, (i+1)*size, version+i); err != nil {
			return 0, err
		}
		if err := s.await(ctx, fmt.Sprintf("/api/products?limit=1&search=v%d", version+i), size); err != nil {
			return 0, err
		}
	}
	return batches * size, nil
}

// The functions' memory in GB, as template.yaml says.
const (
	apiMemory        = 3008.0 / 1024
	authorizerMemory = 0.5
)

// Lambda is charged by the time of an invocation. These times are assumed,
// generously: at 1 GB a function has 0.58 of a processor, and a read of the
// table takes some milliseconds of waiting.
const (
	apiSeconds        = 0.010
	authorizerSeconds = 0.005
)

// processorMemory is the memory in GB at which Lambda gives a function a whole
// processor, and callSeconds how long a call of the table is assumed to take.
const (
	processorMemory = 1769.0 / 1024
	callSeconds     = 0.004
)

// lambdaDollars is the price of a million invocations that make so many calls of
// the table, one after another, and use so much of a processor, of which a
// function of little memory has a part.
func lambdaDollars(memory, calls float64, cpu time.Duration) float64 {
	seconds := max(calls*callSeconds+cpu.Seconds()/min(1, memory/processorMemory), 0.001)
	return price.Invocations + price.Million*price.GigabyteSecondsArm64*memory*seconds
}

// lambdaNote says how.
func lambdaNote() string {
	return fmt.Sprintf("Lambda: $%.2f a million invocations and $%.10f a GB-second of arm64, for %.0f ms of waiting for each call of the table and the processor time, "+
		"of which a function with less than 1,769 MB gets a part; the authorizer has %.1f GB.", price.Invocations, price.GigabyteSecondsArm64, callSeconds*1000, authorizerMemory)
}

// costs is the section of what a million requests or changes cost.
func (b *bench) costs(ctx context.Context) error {
	if len(b.spent) == 0 {
		if err := b.units(ctx); err != nil {
			return err
		}
	}
	t := b.table("A million of", "read units of one", "write units of one", "US dollars")
	t.note = fmt.Sprintf("On demand in us-east-1: $%.3f a million write units, $%.3f a million read units, $%.2f a million REST requests; "+
		"Lambda on arm64 $%.2f a million invocations and $%.10f a GB-second, assuming %.0f ms at %.1f GB for the API and %.0f ms at %.1f GB for "+
		"the authorizer, which API keys ask on every request. Without storage, stream reads by Lambda (free), logs and transfer.",
		price.WriteUnits, price.ReadUnits, price.GatewayRequests, price.Invocations, price.GigabyteSecondsArm64, apiSeconds*1000, apiMemory, authorizerSeconds*1000, authorizerMemory)
	for i := range b.spent {
		s := &b.spent[i]
		t.add("table: "+s.name, "", amount(total(s.reads)), amount(total(s.writes)), fmt.Sprintf("%.3f", s.dollars()))
	}
	functions := 2*price.Invocations + price.Million*price.GigabyteSecondsArm64*(apiSeconds*apiMemory+authorizerSeconds*authorizerMemory)
	t.add("Lambda: API and authorizer, each request", "", "", "", fmt.Sprintf("%.3f", functions))
	t.add("API Gateway: each request", "", "", "", fmt.Sprintf("%.3f", price.GatewayRequests))
	return nil
}
