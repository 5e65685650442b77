package commerce

// OrderSource is where an order came from.
type OrderSource string

// SourceAPI is the source of an order that names none.
const SourceAPI OrderSource = "API"

// Values lists what the type accepts.
func (OrderSource) Values() []string { return []string{"POS", "ONLINE", "MANUAL", "API", "IMPORT"} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *OrderSource) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// OrderStatus is the state of an order as a whole.
type OrderStatus string

// The order states.
const (
	OrderDraft      OrderStatus = "DRAFT"
	OrderPending    OrderStatus = "PENDING"
	OrderConfirmed  OrderStatus = "CONFIRMED"
	OrderProcessing OrderStatus = "PROCESSING"
	OrderCompleted  OrderStatus = "COMPLETED"
	OrderCancelled  OrderStatus = "CANCELLED"
)

// Values lists what the type accepts.
func (OrderStatus) Values() []string {
	return enumNames([]OrderStatus{
		OrderDraft, OrderPending, OrderConfirmed, OrderProcessing, OrderCompleted, OrderCancelled,
	})
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *OrderStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// PaymentStatus is the state of an order's money.
type PaymentStatus string

// The payment states.
const (
	PaymentUnpaid            PaymentStatus = "UNPAID"
	PaymentPending           PaymentStatus = "PENDING"
	PaymentAuthorized        PaymentStatus = "AUTHORIZED"
	PaymentPartiallyPaid     PaymentStatus = "PARTIALLY_PAID"
	PaymentPaid              PaymentStatus = "PAID"
	PaymentPartiallyRefunded PaymentStatus = "PARTIALLY_REFUNDED"
	PaymentRefunded          PaymentStatus = "REFUNDED"
	PaymentFailed            PaymentStatus = "FAILED"
	PaymentVoided            PaymentStatus = "VOIDED"
)

// Values lists what the type accepts.
func (PaymentStatus) Values() []string {
	return enumNames([]PaymentStatus{
		PaymentUnpaid, PaymentPending, PaymentAuthorized, PaymentPartiallyPaid, PaymentPaid,
		PaymentPartiallyRefunded, PaymentRefunded, PaymentFailed, PaymentVoided,
	})
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *PaymentStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// FulfillmentStatus is the state of an order's goods.
type FulfillmentStatus string

// The fulfillment states.
const (
	FulfillmentUnfulfilled        FulfillmentStatus = "UNFULFILLED"
	FulfillmentPartiallyFulfilled FulfillmentStatus = "PARTIALLY_FULFILLED"
	FulfillmentFulfilled          FulfillmentStatus = "FULFILLED"
	FulfillmentShipped            FulfillmentStatus = "SHIPPED"
	FulfillmentDelivered          FulfillmentStatus = "DELIVERED"
	FulfillmentReturned           FulfillmentStatus = "RETURNED"
	FulfillmentCancelled          FulfillmentStatus = "CANCELLED"
)

// Values lists what the type accepts.
func (FulfillmentStatus) Values() []string {
	return enumNames([]FulfillmentStatus{
		FulfillmentUnfulfilled, FulfillmentPartiallyFulfilled, FulfillmentFulfilled, FulfillmentShipped,
		FulfillmentDelivered, FulfillmentReturned, FulfillmentCancelled,
	})
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *FulfillmentStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }
