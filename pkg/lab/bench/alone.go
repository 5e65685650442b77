package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// invocations counts the invocations of the embedded service's functions.
type invocations struct {
	mu sync.Mutex
	of map[string]int
}

func (i *invocations) add(function string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.of[function]++
}

// take returns the counts since the last call.
func (i *invocations) take() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	counted := i.of
	i.of = map[string]int{}
	return counted
}

// alone is the section of events that come one at a time, at the rate and at a
// fifth of it.
func (b *bench) alone(ctx context.Context) error {
	s, tenant, err := b.embeddedTenant(ctx)
	if err != nil {
		return err
	}
	for _, rate := range []int{b.Rate, max(1, b.Rate/5)} {
		if err := b.aloneAt(ctx, s.Service, tenant, rate); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) aloneAt(ctx context.Context, s *workload.Service, tenant *workload.Tenant, rate int) error {
	var uses map[meter.Use]meter.Units
	var paced *workload.Paced
	b.invoked.take()
	cpu, err := b.labelled(fmt.Sprintf("alone-%d", rate), func() (err error) {
		uses, err = b.metering(func() (err error) {
			if paced, err = tenant.Pace(ctx, time.Second/time.Duration(rate), b.eventsOf(rate)); err != nil {
				return err
			}
			return s.Quiet(ctx)
		})
		return err
	})
	if err != nil {
		return err
	}
	n := float64(paced.Sent)
	t := b.table(fmt.Sprintf("An event that comes alone, %d/s", rate), "write units", "read units", "calls", "invocations", "CPU")
	t.note = fmt.Sprintf("Of each of %s events: what the table tells, and the processor time of the service by function, in one process with sender and receiver, "+
		"which are part of the rest. p50 %s, p99 %s from a record's message to its event's receipt, all of this being counted.",
		thousands(paced.Sent), milliseconds(paced.Latencies.Percentile(50)), milliseconds(paced.Latencies.Percentile(99)))
	b.useRows(t, uses, n, "≤ 3 write units", "≤ 5 write units")
	counted := b.invoked.take()
	for _, function := range slices.Sorted(maps.Keys(counted)) {
		t.add("function "+function, "", "", "", "", amount(float64(counted[function])/n), milliseconds(time.Duration(float64(cpu[function])/n)))
	}
	t.add("the rest of the process", "", "", "", "", "", milliseconds(time.Duration(float64(cpu[""])/n)))
	return nil
}

// useRows adds a row for each kind of item, and sums with their targets.
func (b *bench) useRows(t *table, uses map[meter.Use]meter.Units, events float64, deliveryTarget, withIndexTarget string) {
	more := slices.Repeat([]string{""}, len(t.rows[0])-5)
	row := func(name, target string, u meter.Units) {
		t.add(name, target, append([]string{amount(u.Writes / events), amount(u.Reads / events), amount(float64(u.Calls) / events)}, more...)...)
	}
	kinds := map[string]meter.Units{}
	var all, delivery, index meter.Units
	for use, units := range uses {
		kinds[use.Item] = kinds[use.Item].Add(units)
		switch {
		case use.Item == meter.StreamItem:
			continue
		case slices.Contains(meter.IndexItems(), use.Item):
			index = index.Add(units)
		case use.Item != meter.RecordItem:
			delivery = delivery.Add(units)
		}
		all = all.Add(units)
	}
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(x, y string) int {
		return cmp.Or(cmp.Compare(kinds[y].Writes, kinds[x].Writes), cmp.Compare(x, y))
	}) {
		row(kind, "", kinds[kind])
	}
	row("all but record and index", deliveryTarget, delivery)
	row("all but record", withIndexTarget, delivery.Add(index))
	row("all", "", all)
}

// labelled measures the processor time of this process by function, and keeps
// the profile when that is asked for.
func (b *bench) labelled(name string, measure func() error) (map[string]time.Duration, error) {
	var made bytes.Buffer
	if err := pprof.StartCPUProfile(&made); err != nil {
		return nil, fmt.Errorf("make a profile: %w", err)
	}
	err := measure()
	pprof.StopCPUProfile()
	if b.Profiles != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(b.Profiles, name+".prof"), made.Bytes(), 0o600))
	}
	if err != nil {
		return nil, err
	}
	p, err := profile.ParseData(made.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read a profile: %w", err)
	}
	cpu := map[string]time.Duration{}
	for _, sample := range p.Sample {
		function := ""
		if labels := sample.Label["function"]; len(labels) > 0 {
			function = labels[0]
		}
		cpu[function] += time.Duration(sample.Value[1]) // nanoseconds
	}
	return cpu, nil
}
