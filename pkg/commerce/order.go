package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

var orderKind = &definition{
	kind: KindOrder, plural: "orders", months: true,
	columns: []string{
		columnSite, "status", "paymentStatus", "fulfillmentStatus", "customerId", "currency", "orderNumber",
		"customerName", "customerEmail", "externalRef", "total", "placedAt", "createdAt", "updatedAt",
	},
	search: []string{"orderNumber", "customerName", "customerEmail"},
	orders: []lists.Order{
		lists.By("placedAt"), lists.By("createdAt"), lists.By("updatedAt"), lists.By("total"), lists.ByText("orderNumber"),
	},
	filters: []lists.Filter{
		siteFilter("The site of the order."),
		{Name: "status", Description: "The state of the order."},
		{Name: "paymentStatus", Description: "The state of the order's money."},
		{Name: "fulfillmentStatus", Description: "The state of the order's goods."},
		{Name: "customerId", Description: "The customer."},
		{Name: "currency", Description: "ISO 4217 codes."},
		{Name: "orderNumber", Description: "The order's number."},
		{Name: "placedAt", Description: "When the order was placed."},
	},
	events: orderEvents,
	sample: `{
		"id": "0192f0c2-7e80-7a55-8e80-95d4e6f70819", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"orderNumber": "2026-004711", "source": "ONLINE", "currency": "EUR",
		"customerId": "0192f0c2-5d6f-7c44-9d7f-84c3d5e6f708", "customerName": "Ada Okafor",
		"customerEmail": "ada.okafor@example.com",
		"shippingAddress": {"firstName": "Ada", "lastName": "Okafor", "line1": "Lindenstr. 7", "city": "Berlin",
			"postalCode": "10969", "country": "DE"},
		"items": [{"productId": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "sku": "CUP-080-W", "name": "Espresso cup",
			"quantity": 4, "unitPrice": 8.9, "discountAmount": 3.6, "taxRate": 20}],
		"shippingTotal": 4.9, "placedAt": "2026-11-21T06:35:40.118Z"}`,
}

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

func (in *orderInput) complete(d *draft) any {
	o := &in.Order
	d.adopt(o.ID, &o.OrganizationID)
	d.require("orderNumber", o.OrderNumber != "")
	d.require("currency", o.Currency != "")
	o.Source = cmp.Or(o.Source, "API")
	o.Status = cmp.Or(o.Status, orderPending)
	o.PaymentStatus = cmp.Or(o.PaymentStatus, "UNPAID")
	o.FulfillmentStatus = cmp.Or(o.FulfillmentStatus, "UNFULFILLED")
	d.address("billingAddress", o.BillingAddress)
	d.address("shippingAddress", o.ShippingAddress)
	in.completeNested(d)
	d.texts("couponCodes", o.CouponCodes, maxNested)
	d.tags(o.Tags)
	o.Metadata = d.freeForm("metadata", o.Metadata)
	o.CreatedAt, o.UpdatedAt = d.times(in.CreatedAt)
	o.PlacedAt = orValue(in.PlacedAt, o.CreatedAt)
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
	d.nested("payments", len(o.Payments), func(i int) *value.ID { return &o.Payments[i].ID })
	d.nested("shipments", len(o.Shipments), func(i int) *value.ID { return &o.Shipments[i].ID })
	d.nested("refunds", len(o.Refunds), func(i int) *value.ID { return &o.Refunds[i].ID })
	if !d.nested("items", len(in.Items), func(i int) *value.ID { return &in.Items[i].ID }) {
		return
	}
	o.Items = make([]OrderItem, len(in.Items))
	for i := range in.Items {
		item := &in.Items[i]
		path := at("items", i) + "."
		d.require(path+"name", item.Name != "")
		d.checkLine(path, item.line())
		item.Attributes = d.freeForm(path+"attributes", item.Attributes)
	}
}

func (in *orderItemInput) line() line {
	item := &in.OrderItem
	return line{
		unit: &item.Unit, discount: item.DiscountAmount, taxRate: item.TaxRate,
		sent: lineAmounts{in.Quantity, in.UnitPrice, in.Subtotal, in.TaxAmount, in.Total},
		kept: lineAmounts{&item.Quantity, &item.UnitPrice, &item.Subtotal, &item.TaxAmount, &item.Total},
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
		sums.add(d.line(at("items", i)+".", in.Items[i].line(), o.PricesIncludeTax))
		o.Items[i] = in.Items[i].OrderItem
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
