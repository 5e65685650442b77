package ingest

import (
	"context"
	"fmt"
	"maps"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/sender"
)

// reasonSignature is the reason of a message that no key of its organization
// signed.
const reasonSignature = "signature_invalid"

// verify refuses the messages that no key of their organization signed.
func (g *Ingester) verify(ctx context.Context, messages []*message) {
	byOrganization := map[value.ID][]*message{}
	for _, m := range messages {
		if org := m.organization(); !org.IsZero() {
			byOrganization[org] = append(byOrganization[org], m)
		}
	}
	// One after another within an organization, so that its keys are read once.
	parallel.Each(maxParallelWrites, maps.All(byOrganization), func(_ value.ID, group []*message) {
		for _, m := range group {
			g.verifyOne(ctx, m)
		}
	})
}

func (g *Ingester) verifyOne(ctx context.Context, m *message) {
	proof, err := g.senders.Verify(ctx, m.organization(), m.Body, m.signature())
	proof.Valid = proof.Valid || m.receipt != nil
	switch {
	case err != nil:
		m.err = fmt.Errorf("verify the sender: %w", err)
	case !proof.Valid:
		m.refusals = []commerce.Refusal{{
			Reason: reasonSignature, Body: []byte(m.Body),
			Message: "the organization has sender keys, and none of them made the attribute " + sender.Attribute + " of the message",
		}}
	default:
		m.proof = proof
		return
	}
	m.changes = nil
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

func (m *message) signature() string {
	if s := m.MessageAttributes[sender.Attribute].StringValue; s != nil {
		return *s
	}
	return ""
}

// sign gives the refused records of the message signatures, so that they can be
// sent again: a body that is the message's keeps its own.
func (m *message) sign() {
	for i := range m.refusals {
		r := &m.refusals[i]
		if string(r.Body) == m.Body && m.receipt == nil {
			r.Signature = m.signature()
		} else {
			r.Signature = m.proof.Sign(string(r.Body))
		}
	}
}
