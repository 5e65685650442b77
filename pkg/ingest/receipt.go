package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
)

// findReceipts reads the receipts of the messages that name one. A receipt
// counts for the very message that it was given for: any sender may name one in
// an attribute, but only the API stores those of posted records.
func (g *Ingester) findReceipts(ctx context.Context, messages []*message) {
	parallel.Each(maxParallelWrites, slices.All(messages), func(_ int, m *message) {
		text := m.MessageAttributes[receipt.Attribute].StringValue
		org := m.organization()
		if text == nil || org.IsZero() {
			return
		}
		id, err := value.ParseID(*text)
		if err != nil {
			return
		}
		found, err := g.store.Receipt(ctx, org, id)
		switch {
		case err != nil:
			m.err, m.changes = fmt.Errorf("read the receipt: %w", err), nil
		case found != nil && found.Receipt.Source != receipt.Queued && found.IsOf(m.Body):
			m.receipt = found
			for i := range m.changes {
				m.changes[i].LaterWins = found.Receipt.Source == receipt.Webhook
			}
		}
	})
}

// organization is the one that the message names, zero when none of its
// records can be told.
func (m *message) organization() value.ID {
	for _, c := range m.changes {
		return c.OrganizationID
	}
	for _, r := range m.refusals {
		return r.OrganizationID
	}
	return value.ID{}
}

// completeReceipts completes the receipts of the messages that are done, and makes
// those of other messages with refused records. A message that names no
// organization gets none.
func (g *Ingester) completeReceipts(ctx context.Context, messages []*message) {
	parallel.Each(maxParallelWrites, slices.All(messages), func(_ int, m *message) {
		var err error
		switch now := g.now(); {
		case m.err != nil:
			return
		case m.receipt != nil && m.receipt.Receipt.Status == receipt.Pending:
			err = g.store.CompleteReceipt(ctx, m.receipt.Complete(m.shown(), now))
		case m.receipt == nil && !m.organization().IsZero() && len(m.refusals) > 0:
			made := receipt.NewQueued(m.organization(), []byte(m.Body), m.records, m.arrived, now)
			err = g.store.CreateReceipt(ctx, made.Complete(m.shown(), now))
		}
		if err != nil {
			m.err = fmt.Errorf("complete the receipt: %w", err)
		}
	})
}

// shown are the refusals of a message as its receipt has them.
func (m *message) shown() []receipt.Refusal {
	refusals := make([]receipt.Refusal, len(m.refusals))
	for i, r := range m.refusals {
		field := r.Field
		if r.Position != commerce.Alone {
			field = fmt.Sprintf("records[%d]", r.Position)
			if r.Field != "" && r.Field != "body" {
				field += "." + r.Field
			}
		}
		one := &refusals[i]
		*one = receipt.Refusal{Position: max(r.Position, 0), Code: r.Reason, Field: field, Message: r.Message}
		kind, id := r.About()
		if kind != "" {
			one.Kind = (*string)(&kind)
		}
		if !id.IsZero() {
			one.RecordID = &id
		}
	}
	slices.SortStableFunc(refusals, func(a, b receipt.Refusal) int { return a.Position - b.Position })
	return refusals
}
