package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
)

// measureIsolation is the section of what an organization feels of others.
func measureIsolation(ctx context.Context, w *webhooks) error {
	t := w.table(fmt.Sprintf("Isolation: another organization's events, %d/s", w.cfg.Others), latencyColumns()...)
	t.note = "From a record's message to its event's receipt, on a fixed schedule. The endpoint that hangs takes requests and never answers, " +
		"until its timeout of 15 s. The import is in messages of 400 records, and its organization has an endpoint that gets an event of each."
	if err := w.besideHanging(ctx, t); err != nil {
		return err
	}
	return w.besideImport(ctx, t)
}

// besideHanging measures one organization while another's endpoint is well,
// and while it hangs and many of its events wait.
func (w *webhooks) besideHanging(ctx context.Context, t *table) (err error) {
	i, err := w.start(ctx, "hanging", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	one, err := w.warmed(ctx, i)
	if err != nil {
		return err
	}
	other, err := w.warmed(ctx, i)
	if err != nil {
		return err
	}
	events := int(float64(w.cfg.Others) * w.cfg.Duration.Seconds())
	enough := func(n int) bool { return n < events }
	alone, err := other.steady(ctx, w.cfg.Others, enough)
	if err != nil {
		return err
	}
	t.add("nothing else going on", "", alone.cells()...)
	end := one.inbox.hang()
	defer end()
	letters, err := one.letters(w.cfg.Waiting)
	if err != nil {
		return err
	}
	if err := one.sendAll(ctx, letters); err != nil {
		return err
	}
	beside, err := other.steady(ctx, w.cfg.Others, enough)
	if err != nil {
		return err
	}
	i.log.silent.Store(true) // that attempts are under way when it ends
	left, err := i.messages(ctx, i.info.DeliveriesQueueURL)
	if err != nil {
		return err
	}
	slow, err := i.messages(ctx, i.info.SlowDeliveriesQueueURL)
	if err != nil {
		return err
	}
	t.add(fmt.Sprintf("beside an endpoint that hangs, %s events for it sent before (%s and %s left in the queues)",
		thousands(w.cfg.Waiting), thousands(left), thousands(slow)), "p99 < 2 s later", beside.cells()...)
	return nil
}

// besideImport measures one organization while another's records are imported
// and their events delivered.
func (w *webhooks) besideImport(ctx context.Context, t *table) (err error) {
	i, err := w.start(ctx, "import", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	importer, err := w.warmed(ctx, i)
	if err != nil {
		return err
	}
	other, err := w.warmed(ctx, i)
	if err != nil {
		return err
	}
	importer.inbox.clear()
	started := time.Now()
	var arrived atomic.Bool
	group, grouped := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := importer.importAll(grouped, w.cfg.Imported); err != nil {
			return err
		}
		err := importer.inbox.await(grouped, w.cfg.Imported)
		arrived.Store(true)
		return err
	})
	var beside *steady
	group.Go(func() (err error) {
		beside, err = other.steady(grouped, w.cfg.Others, func(int) bool { return !arrived.Load() })
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(started)
	t.add(fmt.Sprintf("beside an import of %s records, whose events took %.0f s", thousands(w.cfg.Imported), took.Seconds()),
		"p99 < 5 s later", beside.cells()...)
	return nil
}

// importAll sends products as an import does, in messages of many records.
func (t *tenant) importAll(ctx context.Context, products int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	end := t.next + products
	for ; t.next < end; t.next = min(end, t.next+perMessage) {
		from, to := t.next, min(end, t.next+perMessage)
		group.Go(func() error {
			var parcels []*commerce.Product
			for n := from; n < to; n++ {
				parcels = append(parcels, t.shop.parcel(n))
			}
			return sendProducts(ctx, t.instance.queues, t.instance.info.RecordsQueueURL, parcels, false)
		})
	}
	return group.Wait()
}
