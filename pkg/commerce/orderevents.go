package commerce

// OrderSource is where an order came from.
type OrderSource string

// Values lists what the type accepts.
func (OrderSource) Values() []string { return []string{"POS", "ONLINE", "MANUAL", "API", "IMPORT"} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *OrderSource) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// OrderStatus is the state of an order as a whole.
type OrderStatus string

// Values lists what the type accepts.
func (OrderStatus) Values() []string {
	return []string{"DRAFT", "PENDING", "CONFIRMED", "PROCESSING", "COMPLETED", "CANCELLED"}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *OrderStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// PaymentStatus is the state of an order's money.
type PaymentStatus string

// Values lists what the type accepts.
func (PaymentStatus) Values() []string {
	return []string{
		"UNPAID", "PENDING", "AUTHORIZED", "PARTIALLY_PAID", "PAID", "PARTIALLY_REFUNDED", "REFUNDED", "FAILED", "VOIDED",
	}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *PaymentStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// FulfillmentStatus is the state of an order's goods.
type FulfillmentStatus string

// Values lists what the type accepts.
func (FulfillmentStatus) Values() []string {
	return []string{
		"UNFULFILLED", "PARTIALLY_FULFILLED", "FULFILLED", "SHIPPED", "DELIVERED", "RETURNED", "CANCELLED",
	}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *FulfillmentStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }

var orderEvents = append(lifecycle(KindOrder, "An order", "A field of an order changed.", `{"notes": "Ring twice."}`),
	recordEvent{
		name: "order.confirmed", text: "An order was confirmed, or went on to be processed or completed without that state.",
		happened: isConfirmed,
		example:  `{"status": "CONFIRMED"}`,
	},
	recordEvent{
		name: "order.completed", text: "An order's status became COMPLETED.",
		happened: becomes(status, "COMPLETED"),
		example:  `{"status": "COMPLETED", "completedAt": "2026-11-21T08:35:00.000Z"}`,
	},
	recordEvent{
		name: "order.cancelled", text: "An order's status became CANCELLED.",
		happened: becomes(status, "CANCELLED"),
		example:  `{"status": "CANCELLED", "cancelReason": "Ordered by mistake", "cancelledAt": "2026-11-21T08:35:00.000Z"}`,
	},
	recordEvent{
		name: "order.fulfilled", text: "All goods of an order were provided: its fulfillmentStatus became FULFILLED, SHIPPED or DELIVERED.",
		happened: enters(fulfillment, "FULFILLED", "SHIPPED", "DELIVERED"),
		example:  `{"fulfillmentStatus": "FULFILLED", "fulfilledAt": "2026-11-21T08:35:00.000Z"}`,
	},
	recordEvent{
		name: "order.shipped", text: "The goods of an order left: its fulfillmentStatus became SHIPPED or DELIVERED.",
		happened: enters(fulfillment, "SHIPPED", "DELIVERED"),
		example: `{"fulfillmentStatus": "SHIPPED", "shipments": [{"carrier": "DHL",
			"trackingNumber": "00340434161094015902", "shippedAt": "2026-11-21T08:35:00.000Z"}]}`,
	},
	recordEvent{name: "order.paid", text: "An order was paid in full.", happened: isPaidUp, example: examplePaid},
	recordEvent{name: "payment.completed", text: "An order was paid in full; the object is the order.", happened: isPaidUp, example: examplePaid},
	recordEvent{name: "order.refunded", text: "Money was given back for an order, in part or in full.", happened: isRefunded, example: exampleRefunded},
	recordEvent{
		name: "payment.refunded", text: "Money was given back for an order, in part or in full; the object is the order.",
		happened: isRefunded,
		example:  exampleRefunded,
	},
	recordEvent{
		name: "payment.authorized", text: "An order's payment was authorized; the object is the order.",
		happened: becomes(payment, "AUTHORIZED"),
		example:  `{"paymentStatus": "AUTHORIZED"}`,
	},
	recordEvent{
		name: "payment.failed", text: "An order's payment failed; the object is the order.",
		happened: becomes(payment, "FAILED"),
		example:  `{"paymentStatus": "FAILED"}`,
	})

const (
	examplePaid = `{"paymentStatus": "PAID", "paidAt": "2026-11-21T08:35:00.000Z", "payments": [{"method": "CARD",
		"provider": "stripe", "reference": "pi_3Qk2", "status": "SUCCEEDED", "amount": 43.3,
		"paidAt": "2026-11-21T08:35:00.000Z"}]}`
	exampleRefunded = `{"paymentStatus": "PARTIALLY_REFUNDED", "refunds": [{"amount": 8.9, "reason": "One cup broken",
		"refundedAt": "2026-11-21T08:35:00.000Z"}]}`
)

// isConfirmed also covers an order that skips the state: from one before it
// straight to one after it.
func isConfirmed(was, is states) bool {
	return becomes(status, "CONFIRMED")(was, is) ||
		oneOf(was.status, "", "DRAFT", "PENDING") && oneOf(is.status, "PROCESSING", "COMPLETED")
}

// isPaidUp does not cover a refund that is taken back.
func isPaidUp(was, is states) bool {
	return becomes(payment, "PAID")(was, is) && !oneOf(was.payment, "PARTIALLY_REFUNDED", "REFUNDED")
}

func isRefunded(was, is states) bool {
	return is.refunded > was.refunded || enters(payment, "PARTIALLY_REFUNDED", "REFUNDED")(was, is)
}
