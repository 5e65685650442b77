package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// measureTableShare is the section of what deliveries use of the table, and
// of what the table does with the very same writes when it does nothing else.
func measureTableShare(ctx context.Context, w *webhooks) error {
	recorded, err := w.recorded(ctx)
	if err != nil {
		return err
	}
	if err := w.tellUnits(recorded); err != nil {
		return err
	}
	return w.tellAlone(ctx, recorded)
}

// recorded is what a service asked of its table.
type recorded struct {
	before []*tapped // until the service was warm
	calls  []*tapped // for the events
	flow   *flow
	stream int // requests of the stream meanwhile
}

// recorded lets events go through a service whose requests of the table are
// seen.
func (w *webhooks) recorded(ctx context.Context) (rec *recorded, err error) {
	table, err := w.startTable(ctx, "recorded-table")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	tap, err := newTap(ctx, table.Endpoint())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tap.close()) }()
	i, err := w.start(ctx, "recorded", tap.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	tenant, err := w.warmed(ctx, i)
	if err != nil {
		return nil, err
	}
	rec = &recorded{before: tap.clear()}
	if rec.flow, err = tenant.flow(ctx, w.cfg.Events); err != nil {
		return nil, err
	}
	tap.mu.Lock()
	rec.stream = tap.streams
	tap.mu.Unlock()
	rec.calls = tap.clear()
	return rec, nil
}

func (w *webhooks) startTable(ctx context.Context, name string) (*tableserver.Server, error) {
	binary, err := tableserver.Install(ctx, w.cfg.BinDir)
	if err != nil {
		return nil, err
	}
	return tableserver.Start(ctx, binary, filepath.Join(w.dir, name), nil)
}

// usage is what a kind of item takes, of all events.
type usage struct{ reads, writes, items float64 }

// usages divides the units of the calls among the kinds of their items: by
// their size where a call has several.
func usages(calls []*tapped) (map[string]*usage, error) {
	sums := map[string]*usage{}
	for _, c := range calls {
		all, err := touches(c.operation, c.body)
		if err != nil {
			return nil, err
		}
		weight := 0.0
		for _, item := range all {
			weight += item.units
		}
		for _, item := range all {
			kind := item.kind()
			if sums[kind] == nil {
				sums[kind] = &usage{}
			}
			sum, part := sums[kind], c.units*item.units/weight
			if writes(c.operation) {
				sum.writes += part
				sum.items++
			} else {
				sum.reads += part
			}
		}
	}
	return sums, nil
}

// tellUnits tells what an event uses of the table.
func (w *webhooks) tellUnits(rec *recorded) error {
	sums, err := usages(rec.calls)
	if err != nil {
		return err
	}
	events := float64(rec.flow.events)
	t := w.table(fmt.Sprintf("The table's work for one delivered event, payload %s", kilobytes(rec.flow.payload)), "write units", "items written", "read units")
	kinds := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].writes, sums[a].writes), cmp.Compare(a, b))
	})
	var delivery, all usage
	row := func(name, target string, u *usage) {
		t.add(name, target, amount(u.writes/events), amount(u.items/events), amount(u.reads/events))
	}
	for _, kind := range kinds {
		u := sums[kind]
		row(kind, "", u)
		all.plus(u)
		if kind != kindRecord && kind != kindIndex {
			delivery.plus(u)
		}
	}
	row("all but record and index", "≤ 5 write units", &delivery)
	row("all", "", &all)
	t.note = fmt.Sprintf("As the table tells it on the wire for %s events; where a call has items of several kinds, by their sizes. "+
		"%d calls were refused, which tell nothing.", thousands(rec.flow.events), refusals(rec.calls))
	return w.tellCalls(rec)
}

func (u *usage) plus(v *usage) {
	u.reads, u.writes, u.items = u.reads+v.reads, u.writes+v.writes, u.items+v.items
}

// way is one way of using the table: an operation on items of a kind, which
// is that of the first.
type way struct{ operation, kind string }

// tellCalls tells how an event's work is spread over calls, which are what
// costs processor time.
func (w *webhooks) tellCalls(rec *recorded) error {
	calls, touched, sum := map[way]float64{}, map[way]float64{}, 0.0
	for _, c := range rec.calls {
		all, err := touches(c.operation, c.body)
		if err != nil {
			return err
		}
		used := way{c.operation, all[0].kind()}
		calls[used]++
		touched[used] += float64(len(all))
		sum++
	}
	events := float64(rec.flow.events)
	t := w.table("Calls of the table for one delivered event", "calls", "items of a call")
	for _, used := range slices.SortedFunc(maps.Keys(calls), func(a, b way) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a.operation, b.operation), cmp.Compare(a.kind, b.kind))
	}) {
		t.add(used.operation+", "+used.kind, "", amount(calls[used]/events), amount(touched[used]/calls[used]))
	}
	t.add("all", "", amount(sum/events), "")
	t.add("of the stream", "", amount(float64(rec.stream)/events), "")
	return nil
}

func refusals(calls []*tapped) (n int) {
	for _, c := range calls {
		if c.refused {
			n++
		}
	}
	return n
}

// tellAlone tells what the table does with the same writes alone.
func (w *webhooks) tellAlone(ctx context.Context, rec *recorded) error {
	t := w.table("The local table alone, with the writes of the same events", "events/s", "calls/s", "CPU table", "reached end to end")
	t.note = "The service's own requests, as they were sent, to a new table of its own process, with as many connections as say; " +
		"a request waits for those before it that touch the same items. Nobody reads the table or its stream meanwhile. " +
		"End to end is compared with the best of them."
	runs := map[int]replayed{}
	best := 0.0
	connections := []int{2, 4, 8}
	for _, n := range connections {
		r, err := w.replay(ctx, fmt.Sprintf("alone-%d", n), rec, n)
		if err != nil {
			return err
		}
		runs[n] = r
		best = max(best, float64(rec.flow.events)/r.took.Seconds())
	}
	if w.reached == 0 {
		w.reached = rec.flow.perSecond() // with the tap between, somewhat less than without
	}
	for _, n := range connections {
		r := runs[n]
		rate, share := float64(rec.flow.events)/r.took.Seconds(), ""
		if rate == best {
			share = fmt.Sprintf("%s/s, %.0f%%", thousands(int(w.reached)), 100*w.reached/best)
		}
		t.add(fmt.Sprintf("%d connections", n), "≥ 60% reached", thousands(int(rate)),
			thousands(int(float64(r.calls)/r.took.Seconds())), perEvent(r.table, rec.flow.events), share)
	}
	return nil
}
