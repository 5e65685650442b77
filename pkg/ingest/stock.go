package ingest

import (
	"context"
	"fmt"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// maxAdjustments of a row are stored together: a transaction has 100 items, two of
// which are the row's.
const maxAdjustments = 90

// adjust makes the adjustments that come next, together. It is not done when another
// writer was faster. The message that brings the record up to date is sent last: a
// process that dies before leaves messages that come again, and repeat it.
func (g *Ingester) adjust(ctx context.Context, s *subject) (done bool, err error) {
	run := s.adjustments()
	row, err := g.store.StockRow(ctx, s.ref.OrganizationID, s.ref.ID, run)
	if err != nil {
		return false, err
	}
	next, err := row.Adjust(run, g.now())
	if err != nil {
		return false, err
	}
	if next.Record != nil {
		if err := g.setThreshold(ctx, row.Record, next.Record); err != nil {
			return false, err
		}
	}
	if next.Record != nil || len(next.Counted) > 0 {
		if stored, err := g.store.AdjustStock(ctx, s.ref.OrganizationID, s.ref.ID, row, next); err != nil || !stored {
			return false, err
		}
	}
	if next.Later != nil {
		if err := g.queues.SendLater(ctx, s.ref.OrganizationID, next.Later.Message(), commerce.StockInterval); err != nil {
			return false, fmt.Errorf("send for the record of adjustments: %w", err)
		}
	}
	for i, refused := range next.Refused {
		if refused != nil {
			s.refused = append(s.refused, refusal{commerce.Refuse(run[i], refused), s.changes[i].message})
		}
	}
	s.changes = s.changes[len(run):]
	if len(s.changes) > 0 {
		g.read(ctx, []*subject{s})
	}
	return true, s.err
}

// adjustments are those that come next, as many as are stored together.
func (s *subject) adjustments() (run []commerce.Change) {
	for _, c := range s.changes {
		if c.Op != commerce.OpAdjust || len(run) == maxAdjustments {
			break
		}
		run = append(run, c.Change)
	}
	return run
}

// setThreshold gives a row of stock the threshold of its product, of which it may run
// low by the change.
func (g *Ingester) setThreshold(ctx context.Context, old, next *commerce.Stored) error {
	return commerce.SetThreshold(old, next, func(product value.ID) (*commerce.Stored, error) {
		return g.store.Record(ctx, next.OrganizationID, commerce.KindProduct, product)
	})
}
