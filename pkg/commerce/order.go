package commerce

import (
	"strconv"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Order is the GET shape of an order. Amounts are in its currency.
type Order struct {
	ID                value.ID          `json:"id"`
	OrganizationID    value.ID          `json:"organizationId"`
	SiteID            *value.ID         `json:"siteId"`
	OrderNumber       string            `json:"orderNumber"`
	ExternalRef       *string           `json:"externalRef"`
	Source            OrderSource       `json:"source"`
	Status            OrderStatus       `json:"status"`
	PaymentStatus     PaymentStatus     `json:"paymentStatus"`
	FulfillmentStatus FulfillmentStatus `json:"fulfillmentStatus"`
	Currency          Currency          `json:"currency"`
	CustomerID        *value.ID         `json:"customerId"`
	CustomerName      *string           `json:"customerName"`
	CustomerEmail     *string           `json:"customerEmail"`
	BillingAddress    *Address          `json:"billingAddress"`
	ShippingAddress   *Address          `json:"shippingAddress"`
	Items             []OrderItem       `json:"items"`
	TaxLines          []TaxLine         `json:"taxLines"`
	Payments          []Payment         `json:"payments"`
	Shipments         []Shipment        `json:"shipments"`
	Refunds           []Refund          `json:"refunds"`
	CouponCodes       []string          `json:"couponCodes"`
	PricesIncludeTax  bool              `json:"pricesIncludeTax"`
	Subtotal          value.Amount      `json:"subtotal"`
	DiscountTotal     value.Amount      `json:"discountTotal"`
	ShippingTotal     value.Amount      `json:"shippingTotal"`
	TaxTotal          value.Amount      `json:"taxTotal"`
	Total             value.Amount      `json:"total"`
	PaidTotal         value.Amount      `json:"paidTotal"`
	RefundedTotal     value.Amount      `json:"refundedTotal"`
	BalanceDue        value.Amount      `json:"balanceDue"`
	Notes             *string           `json:"notes"`
	CancelReason      *string           `json:"cancelReason"`
	Tags              []string          `json:"tags"`
	Metadata          jsontext.Value    `json:"metadata"`
	PlacedAt          value.Time        `json:"placedAt"`
	PaidAt            *value.Time       `json:"paidAt"`
	FulfilledAt       *value.Time       `json:"fulfilledAt"`
	CompletedAt       *value.Time       `json:"completedAt"`
	CancelledAt       *value.Time       `json:"cancelledAt"`
	CreatedAt         value.Time        `json:"createdAt"`
	UpdatedAt         value.Time        `json:"updatedAt"`
}

// OrderItem is one position of an order.
type OrderItem struct {
	ID                value.ID       `json:"id"`
	ProductID         *value.ID      `json:"productId"`
	SKU               *string        `json:"sku"`
	Name              string         `json:"name"`
	Unit              Unit           `json:"unit"`
	Quantity          value.Amount   `json:"quantity"`
	UnitPrice         value.Amount   `json:"unitPrice"`
	DiscountAmount    *value.Amount  `json:"discountAmount"`
	TaxRate           *value.Amount  `json:"taxRate"`
	TaxAmount         value.Amount   `json:"taxAmount"`
	Subtotal          value.Amount   `json:"subtotal"`
	Total             value.Amount   `json:"total"`
	FulfilledQuantity *value.Amount  `json:"fulfilledQuantity"`
	RefundedQuantity  *value.Amount  `json:"refundedQuantity"`
	Attributes        jsontext.Value `json:"attributes"`
}

// TaxLine is one tax of an order or an invoice, over all positions.
type TaxLine struct {
	Name          *string       `json:"name"`
	TaxRate       *value.Amount `json:"taxRate"`
	TaxableAmount *value.Amount `json:"taxableAmount"`
	TaxAmount     *value.Amount `json:"taxAmount"`
}

// Payment is one payment of an order; paidAt is null until the money came.
type Payment struct {
	ID        value.ID      `json:"id"`
	Method    *string       `json:"method"`
	Provider  *string       `json:"provider"`
	Reference *string       `json:"reference"`
	Status    *string       `json:"status"`
	Amount    *value.Amount `json:"amount"`
	PaidAt    *value.Time   `json:"paidAt"`
}

// Shipment is one parcel of an order.
type Shipment struct {
	ID             value.ID       `json:"id"`
	Carrier        *string        `json:"carrier"`
	TrackingNumber *string        `json:"trackingNumber"`
	TrackingURL    *string        `json:"trackingUrl"`
	Items          []ItemQuantity `json:"items"`
	ShippedAt      *value.Time    `json:"shippedAt"`
	DeliveredAt    *value.Time    `json:"deliveredAt"`
}

// Refund is money given back for an order.
type Refund struct {
	ID         value.ID       `json:"id"`
	Amount     *value.Amount  `json:"amount"`
	Reason     *string        `json:"reason"`
	Items      []ItemQuantity `json:"items"`
	RefundedAt *value.Time    `json:"refundedAt"`
}

// ItemQuantity is a part of an order's item in a shipment or a refund.
type ItemQuantity struct {
	ItemID   *value.ID     `json:"itemId"`
	Quantity *value.Amount `json:"quantity"`
}

// Kind implements [Record].
func (*Order) Kind() Kind { return KindOrder }

// Head implements [Record].
func (o *Order) Head() Head {
	return Head{
		ID: o.ID, OrganizationID: o.OrganizationID, SiteID: o.SiteID,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
}

// orderInput is an order as a back office sends it.
type orderInput struct {
	Order

	Items         []orderItemInput `json:"items"`
	Subtotal      *value.Amount    `json:"subtotal"`
	DiscountTotal *value.Amount    `json:"discountTotal"`
	ShippingTotal *value.Amount    `json:"shippingTotal"`
	TaxTotal      *value.Amount    `json:"taxTotal"`
	Total         *value.Amount    `json:"total"`
	PaidTotal     *value.Amount    `json:"paidTotal"`
	RefundedTotal *value.Amount    `json:"refundedTotal"`
	BalanceDue    *value.Amount    `json:"balanceDue"`
	PlacedAt      *value.Time      `json:"placedAt"`
	CreatedAt     *value.Time      `json:"createdAt"`
	UpdatedAt     jsontext.Value   `json:"updatedAt"` // ignored
}

// orderItemInput is an item as a back office sends it.
type orderItemInput struct {
	OrderItem

	Quantity  *value.Amount `json:"quantity"`
	UnitPrice *value.Amount `json:"unitPrice"`
	TaxAmount *value.Amount `json:"taxAmount"`
	Subtotal  *value.Amount `json:"subtotal"`
	Total     *value.Amount `json:"total"`
}

func (in *orderInput) complete(d *draft) Record {
	o := &in.Order
	d.adopt(o.ID, &o.OrganizationID)
	d.require("orderNumber", o.OrderNumber != "")
	d.require("currency", o.Currency != "")
	o.Source = orDefault(o.Source, SourceAPI)
	o.Status = orDefault(o.Status, OrderPending)
	o.PaymentStatus = orDefault(o.PaymentStatus, PaymentUnpaid)
	o.FulfillmentStatus = orDefault(o.FulfillmentStatus, FulfillmentUnfulfilled)
	d.address("billingAddress", o.BillingAddress)
	d.address("shippingAddress", o.ShippingAddress)
	in.completeNested(d)
	d.texts("couponCodes", o.CouponCodes, maxNested)
	d.tags("tags", o.Tags)
	o.Metadata = d.freeForm("metadata", o.Metadata)
	o.CreatedAt = orValue(in.CreatedAt, d.createdAt)
	o.PlacedAt = orValue(in.PlacedAt, o.CreatedAt)
	o.UpdatedAt = d.updatedAt
	if d.ok() {
		in.deriveTotals(d)
	}
	return o
}

// completeNested gives every entry of the order's lists its identifier and
// checks its fields.
func (in *orderInput) completeNested(d *draft) {
	o := &in.Order
	d.taxLines(o.TaxLines)
	d.count("payments", len(o.Payments), maxNested)
	for i := range o.Payments {
		d.nestedID(&o.Payments[i].ID, "payments", i)
	}
	d.count("shipments", len(o.Shipments), maxNested)
	for i := range o.Shipments {
		d.nestedID(&o.Shipments[i].ID, "shipments", i)
	}
	d.count("refunds", len(o.Refunds), maxNested)
	for i := range o.Refunds {
		d.nestedID(&o.Refunds[i].ID, "refunds", i)
	}
	if !d.count("items", len(in.Items), maxNested) {
		return
	}
	o.Items = make([]OrderItem, len(in.Items))
	for i := range in.Items {
		item := &in.Items[i]
		path := "items[" + strconv.Itoa(i) + "]."
		d.nestedID(&item.ID, "items", i)
		d.require(path+"name", item.Name != "")
		d.require(path+"quantity", item.Quantity != nil)
		d.require(path+"unitPrice", item.UnitPrice != nil)
		d.percent(path+"taxRate", item.TaxRate)
		item.Unit = orDefault(item.Unit, UnitPiece)
		item.Attributes = d.freeForm(path+"attributes", item.Attributes)
	}
}

// deriveTotals fills what the sender left out of the order's arithmetic.
func (in *orderInput) deriveTotals(d *draft) {
	o := &in.Order
	sums := documentSums{
		subtotal: in.Subtotal, discount: in.DiscountTotal, tax: in.TaxTotal, total: in.Total,
		shipping: orValue(in.ShippingTotal, 0), inclusive: o.PricesIncludeTax,
	}
	for i := range in.Items {
		item := &in.Items[i]
		l := lineSums{
			quantity: *item.Quantity, unitPrice: *item.UnitPrice,
			discount: orValue(item.DiscountAmount, 0), taxRate: orValue(item.TaxRate, 0),
			subtotal: item.Subtotal, tax: item.TaxAmount, total: item.Total,
		}
		got := d.line("items["+strconv.Itoa(i)+"].", l, o.PricesIncludeTax)
		item.OrderItem.Quantity, item.OrderItem.UnitPrice = l.quantity, l.unitPrice
		item.OrderItem.Subtotal, item.OrderItem.TaxAmount, item.OrderItem.Total = got.subtotal, got.tax, got.total
		o.Items[i] = item.OrderItem
		sums.add(got)
	}
	got := d.document(sums)
	o.Subtotal, o.DiscountTotal, o.TaxTotal, o.Total = got.subtotal, got.discount, got.tax, got.total
	o.ShippingTotal = sums.shipping
	o.PaidTotal = d.bounded("paidTotal", in.PaidTotal, paid(o.Payments))
	o.RefundedTotal = d.bounded("refundedTotal", in.RefundedTotal, refunded(o.Refunds))
	o.BalanceDue = d.bounded("balanceDue", in.BalanceDue, max(0, o.Total-o.PaidTotal))
}

// paid sums the payments whose money came.
func paid(payments []Payment) (sum value.Amount) {
	for _, p := range payments {
		if p.PaidAt != nil {
			sum += orValue(p.Amount, 0)
		}
	}
	return sum
}

func refunded(refunds []Refund) (sum value.Amount) {
	for _, r := range refunds {
		sum += orValue(r.Amount, 0)
	}
	return sum
}
