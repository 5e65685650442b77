package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/pause"
)

// spent is what the table told of some requests or changes: units by kind of
// item, for one of them.
type spent struct {
	name   string
	reads  map[string]float64
	writes map[string]float64
}

// ofRequests are the kinds of item that requests and changes are about. What
// the schedule does in the same time, the due jobs and the retries, is no part
// of them.
func ofRequests() []string {
	return []string{
		meter.RecordItem, meter.TailItem, meter.ManifestItem, meter.ChunkItem,
		meter.RateItem, meter.KeyItem, meter.ApplicationItem,
	}
}

// share divides what was used among so many requests.
func share(name string, uses map[meter.Use]meter.Units, among float64) spent {
	s := spent{name: name, reads: map[string]float64{}, writes: map[string]float64{}}
	for use, units := range uses {
		// Asking for a job is part of a change; reading which are due is not.
		wanted := slices.Contains(ofRequests(), use.Item) || use.Item == meter.JobItem && use.Operation != "Query"
		if !wanted {
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

func total(units map[string]float64) (sum float64) {
	for _, n := range units {
		sum += n
	}
	return sum
}

// dollars is what a million of them cost at the table.
func (s *spent) dollars() float64 {
	return total(s.reads)*readUnitPrice + total(s.writes)*writeUnitPrice
}

// unitColumns head what cells tells.
func unitColumns() []string { return []string{"read units", "of them", "write units", "of them"} }

func (s *spent) cells() []string {
	return []string{amount(total(s.reads)), kinds(s.reads), amount(total(s.writes)), kinds(s.writes)}
}

// kinds tells what units are for, the most first.
func kinds(units map[string]float64) string {
	sorted := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		return cmp.Or(cmp.Compare(units[b], units[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, kind := range sorted {
		parts = append(parts, kind+" "+amount(units[kind]))
	}
	return strings.Join(parts, ", ")
}

// amount writes a number with as many decimals as matter.
func amount(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 100:
		return thousands(int(n + 0.5))
	case n >= 0.095:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), ".")
	}
	return fmt.Sprintf("%.2g", n)
}

// metering counts what the service and others use of the table during a run.
func (b *bench) metering(run func() error) (map[meter.Use]meter.Units, error) {
	b.meter.Reset()
	b.metered.Store(true)
	defer b.metered.Store(false)
	err := run()
	return b.meter.Uses(), err
}

// measureUnits is the section of what requests and changes use of the table.
func measureUnits(ctx context.Context, b *bench) error {
	s, err := b.loaded(ctx)
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("Units of the table for one request or change, %s products", thousands(s.products)), unitColumns()...)
	t.note = "As the table tells them, leases and what is read when an instance begins included. A read unit is 4 KB read strongly consistent, a write unit 1 KB."
	for _, measure := range []func(context.Context, *service, *table) error{
		b.busyList, b.quietList, b.uncachedPages, b.singleRecords, b.changedRecords,
	} {
		if err := measure(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}

// keep remembers a figure for the costs.
func (b *bench) keep(t *table, target string, s spent) {
	b.spent = append(b.spent, s)
	t.add(s.name, target, s.cells()...)
}

// busyList asks for a list as fast as it goes. Whatever is read and written
// then is for time, not for requests: so it is told by the second.
func (b *bench) busyList(ctx context.Context, s *service, t *table) error {
	targets := []string{"/api/products"}
	if _, err := b.ask(ctx, s, targets, "identity", checkPage); err != nil { // what is cold gets warm
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
	second := share(fmt.Sprintf("list, warm, %s a second: in each second", thousands(int(outcome.PerSecond()))), uses, time.Since(started).Seconds())
	t.add(second.name, "one read of the tail, no record; leases", second.cells()...)
	b.keep(t, "", share("list, warm, so many a second", uses, float64(outcome.all)))
	return nil
}

// quietRequests is how many requests are made a second apart.
func (b *bench) quietRequests() int { return max(2, int(4*b.cfg.Duration/time.Second)) }

// quietList asks once a second, so that each request pays for what a second
// costs.
func (b *bench) quietList(ctx context.Context, s *service, t *table) error {
	n := b.quietRequests()
	uses, err := b.metering(func() error {
		for range n {
			if err := pause.For(ctx, time.Second); err != nil {
				return err
			}
			if _, err := s.total(ctx, "/api/products"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.keep(t, "", share("list, warm, one request a second", uses, float64(n)))
	return nil
}

// uncachedPages asks for pages of records that nobody has asked for.
func (b *bench) uncachedPages(ctx context.Context, s *service, t *table) error {
	const pages = 50
	uses, err := b.metering(func() error {
		for page := range pages {
			// By barcode, from the last: no list before went there.
			path := fmt.Sprintf("/api/products?orderBy=sku&orderDirection=desc&page=%d", s.products/20/2+page)
			if _, err := s.total(ctx, path); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.keep(t, "", share("list, 20 records that no cache has", uses, pages))
	return nil
}

// singleRecords asks for records by id.
func (b *bench) singleRecords(ctx context.Context, s *service, t *table) error {
	var targets []string
	for n := range min(items, s.products) {
		targets = append(targets, "/api/products/"+s.shop.productID(n).String())
	}
	var outcome *Outcome
	uses, err := b.metering(func() (err error) {
		outcome, err = b.ask(ctx, s, targets, "identity", checkItem)
		return err
	})
	if err != nil {
		return err
	}
	b.keep(t, "", share("record by id", uses, float64(outcome.all)))
	return nil
}

// changedRecords sends changes in batches, each of which is indexed before the
// next one comes.
func (b *bench) changedRecords(ctx context.Context, s *service, t *table) error {
	const size = 100
	batches := max(2, b.quietRequests()/2)
	version := int(time.Now().Unix())
	uses, err := b.metering(func() error {
		for i := range batches {
			if err := s.send(ctx, i*size, (i+1)*size, version+i); err != nil {
				return err
			}
			if err := s.await(ctx, fmt.Sprintf("/api/products?limit=1&search=v%d", version+i), size); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for use := range uses { // of the lists that were asked meanwhile
		if use.Item == meter.RateItem || use.Item == meter.KeyItem || use.Item == meter.ApplicationItem {
			delete(uses, use)
		}
	}
	b.keep(t, "", share("product changed, in batches of 100", uses, float64(batches*size)))
	return nil
}
