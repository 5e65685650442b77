package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/receipt"
	"github.com/commerce-integration/service/pkg/value"
)

// findReceipts reads the receipts of the messages that name one. A receipt
// counts for the very message that it was given for: any sender may name one in
// an attribute, but only the API stores them.
func (g *Ingester) findReceipts(ctx context.Context, messages []*message) {
	each(messages, maxParallelWrites, func(m *message) {
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
		case found != nil && found.IsOf(m.Body):
			m.receipt = found
		}
	})
}

// completeReceipts completes the receipts of the messages that are done.
func (g *Ingester) completeReceipts(ctx context.Context, messages []*message) {
	each(messages, maxParallelWrites, func(m *message) {
		if m.err != nil || m.receipt == nil || m.receipt.Receipt.Status == receipt.Completed {
			return
		}
		if err := g.store.CompleteReceipt(ctx, m.receipt.Complete(m.shown(), g.now())); err != nil {
			m.err = fmt.Errorf("complete the receipt: %w", err)
		}
	})
}

// shown are the refusals of a message of many as its receipt has them.
func (m *message) shown() []receipt.Refusal {
	refusals := make([]receipt.Refusal, len(m.refusals))
	for i, r := range m.refusals {
		field := fmt.Sprintf("records[%d]", r.Position)
		if r.Field != "" && r.Field != "body" {
			field += "." + r.Field
		}
		refusals[i] = receipt.Refusal{Position: r.Position, Code: r.Reason, Field: field, Message: r.Message}
	}
	slices.SortStableFunc(refusals, func(a, b receipt.Refusal) int { return a.Position - b.Position })
	return refusals
}
