package commerce

import (
	"slices"

	"github.com/commerce-integration/service/pkg/value"
)

// states is what the transitions of a kind look at. The zero value is the
// state of a record that was not there.
type states struct {
	status, payment, fulfillment string
	refunded                     value.Amount
}

func statesOf(m members) (s states) {
	for i := range m {
		switch m[i].name {
		case "status":
			s.status = string(text(m[i].value))
		case "paymentStatus":
			s.payment = string(text(m[i].value))
		case "fulfillmentStatus":
			s.fulfillment = string(text(m[i].value))
		case "refundedTotal":
			s.refunded, _ = value.ParseAmount(string(m[i].value))
		}
	}
	return s
}

// transition is an event that a change of state means.
type transition struct {
	eventType string
	happened  func(was, is states) bool
}

// transitions returns the types of the state changes between two revisions,
// in the order of the catalogue; before is empty when there was none.
func transitions(kind Kind, before, after members) (types []string) {
	var table []transition
	switch kind {
	case KindOrder:
		table = orderTransitions
	case KindInvoice:
		table = invoiceTransitions
	}
	if table == nil {
		return nil
	}
	was, is := statesOf(before), statesOf(after)
	for _, t := range table {
		if t.happened(was, is) {
			types = append(types, t.eventType)
		}
	}
	return types
}

var orderTransitions = []transition{
	{"order.confirmed", confirmed},
	{"order.completed", func(was, is states) bool { return turns(was.status, is.status, OrderCompleted) }},
	{"order.cancelled", func(was, is states) bool { return turns(was.status, is.status, OrderCancelled) }},
	{"order.fulfilled", func(was, is states) bool {
		return enters(was.fulfillment, is.fulfillment, FulfillmentFulfilled, FulfillmentShipped, FulfillmentDelivered)
	}},
	{"order.shipped", func(was, is states) bool {
		return enters(was.fulfillment, is.fulfillment, FulfillmentShipped, FulfillmentDelivered)
	}},
	{"order.paid", paidUp},
	{"payment.completed", paidUp},
	{"order.refunded", refundMade},
	{"payment.refunded", refundMade},
	{"payment.authorized", func(was, is states) bool { return turns(was.payment, is.payment, PaymentAuthorized) }},
	{"payment.failed", func(was, is states) bool { return turns(was.payment, is.payment, PaymentFailed) }},
}

var invoiceTransitions = []transition{
	{"invoice.issued", func(was, is states) bool {
		return oneOf(was.status, "", InvoiceDraft) && oneOf(is.status, InvoiceIssued, InvoicePartiallyPaid, InvoicePaid)
	}},
	{"invoice.paid", func(was, is states) bool { return turns(was.status, is.status, InvoicePaid) }},
	{"invoice.voided", func(was, is states) bool { return turns(was.status, is.status, InvoiceVoid) }},
}

// confirmed also covers an order that skips the state: straight from before
// it to behind it.
func confirmed(was, is states) bool {
	return turns(was.status, is.status, OrderConfirmed) ||
		oneOf(was.status, "", OrderDraft, OrderPending) && oneOf(is.status, OrderProcessing, OrderCompleted)
}

// paidUp does not cover a refund that is taken back.
func paidUp(was, is states) bool {
	return turns(was.payment, is.payment, PaymentPaid) && !oneOf(was.payment, PaymentPartiallyRefunded, PaymentRefunded)
}

func refundMade(was, is states) bool {
	return is.refunded > was.refunded || enters(was.payment, is.payment, PaymentPartiallyRefunded, PaymentRefunded)
}

// turns reports whether a state became another.
func turns[S ~string](was, is string, to S) bool { return is == string(to) && was != is }

// enters reports whether a state came into a set from outside it.
func enters[S ~string](was, is string, set ...S) bool {
	return oneOf(is, set...) && !oneOf(was, set...)
}

func oneOf[S ~string](s string, set ...S) bool { return slices.Contains(set, S(s)) }
