package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
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
		{Name: "externalRef", Description: "The sender's reference."},
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
	SiteID            *value.ID         `json:"siteId" doc:"The site at which it was placed. null when it is of no site."`
	OrderNumber       string            `json:"orderNumber" doc:"The number that people know it by."`
	ExternalRef       *string           `json:"externalRef" doc:"What another system calls it. null when there is none."`
	Source            OrderSource       `json:"source" doc:"Where it came from; an open enumeration."`
	Status            OrderStatus       `json:"status" doc:"The state of the order as a whole; an open enumeration."`
	PaymentStatus     PaymentStatus     `json:"paymentStatus" doc:"The state of its money; an open enumeration."`
	FulfillmentStatus FulfillmentStatus `json:"fulfillmentStatus" doc:"The state of its goods; an open enumeration."`
	Currency          Currency          `json:"currency" doc:"The currency of every amount of it, an ISO 4217 code."`
	CustomerID        *value.ID         `json:"customerId" doc:"The customer. null for a guest."`
	CustomerName      *string           `json:"customerName" doc:"The customer's name when it was placed. null when it is not known."`
	CustomerEmail     *string           `json:"customerEmail" doc:"The customer's e-mail address when it was placed. null when it is not known."`
	BillingAddress    *Address          `json:"billingAddress" doc:"Where the invoice goes. null when it is not known."`
	ShippingAddress   *Address          `json:"shippingAddress" doc:"Where the goods go. null when nothing is shipped or it is not known."`
	Items             []OrderItem       `json:"items" doc:"What was ordered, at most 1,000 positions."`
	TaxLines          []TaxLine         `json:"taxLines" doc:"The taxes over all positions, one entry for each tax."`
	Payments          []Payment         `json:"payments" doc:"Its payments, those included that have not come yet."`
	Shipments         []Shipment        `json:"shipments" doc:"Its parcels."`
	Refunds           []Refund          `json:"refunds" doc:"Money that was given back."`
	CouponCodes       []string          `json:"couponCodes" doc:"The coupons that were applied."`
	PricesIncludeTax  bool              `json:"pricesIncludeTax" doc:"Whether unitPrice and the subtotals include tax."`
	Subtotal          value.Amount      `json:"subtotal" doc:"The sum of the positions' subtotals, before discounts."`
	DiscountTotal     value.Amount      `json:"discountTotal" doc:"The sum of all discounts."`
	ShippingTotal     value.Amount      `json:"shippingTotal" doc:"What shipping costs."`
	TaxTotal          value.Amount      `json:"taxTotal" doc:"The sum of all taxes."`
	Total             value.Amount      `json:"total" doc:"What the customer owes altogether."`
	PaidTotal         value.Amount      `json:"paidTotal" doc:"What was paid so far."`
	RefundedTotal     value.Amount      `json:"refundedTotal" doc:"What was given back so far."`
	BalanceDue        value.Amount      `json:"balanceDue" doc:"What is still to be paid: total less paidTotal, never below 0."`
	Notes             *string           `json:"notes" doc:"The organization's notes. null when there are none."`
	CancelReason      *string           `json:"cancelReason" doc:"Why it was cancelled. null when it was not, or no reason is known."`
	Tags              []string          `json:"tags" doc:"The organization's own keywords, at most 250 of at most 255 characters."`
	Metadata          jsontext.Value    `json:"metadata" doc:"The organization's own fields, of any name and type, at most 32 KiB and 8 levels deep. Empty when it has none."`
	PlacedAt          value.Time        `json:"placedAt" doc:"When the customer placed it."`
	PaidAt            *value.Time       `json:"paidAt" doc:"When it was paid in full. null before."`
	FulfilledAt       *value.Time       `json:"fulfilledAt" doc:"When all of it was fulfilled. null before."`
	CompletedAt       *value.Time       `json:"completedAt" doc:"When it was completed. null before."`
	CancelledAt       *value.Time       `json:"cancelledAt" doc:"When it was cancelled. null when it was not."`
	CreatedAt         value.Time        `json:"createdAt"`
	UpdatedAt         value.Time        `json:"updatedAt"`
}

// OrderItem is one position of an order.
type OrderItem struct {
	ID                value.ID       `json:"id"`
	ProductID         *value.ID      `json:"productId" doc:"The product. null when it is none of the catalogue's."`
	SKU               *string        `json:"sku" doc:"The product's SKU when it was ordered. null when it had none."`
	Name              string         `json:"name" doc:"The product's name when it was ordered."`
	Unit              Unit           `json:"unit" doc:"The unit of the quantity; an open enumeration."`
	Quantity          value.Amount   `json:"quantity" doc:"How much was ordered, in units."`
	UnitPrice         value.Amount   `json:"unitPrice" doc:"The price of one unit."`
	DiscountAmount    *value.Amount  `json:"discountAmount" doc:"The discount on the whole position. null when there is none."`
	TaxRate           *value.Amount  `json:"taxRate" doc:"Percent: 20 is 20%, from 0 to 1,000. null when it is not known."`
	TaxAmount         value.Amount   `json:"taxAmount" doc:"The tax on the position."`
	Subtotal          value.Amount   `json:"subtotal" doc:"quantity times unitPrice, before the discount."`
	Total             value.Amount   `json:"total" doc:"What the position costs: the subtotal less the discount, and the tax unless prices include it."`
	FulfilledQuantity *value.Amount  `json:"fulfilledQuantity" doc:"How much of it was fulfilled, in units. null when it is not known."`
	RefundedQuantity  *value.Amount  `json:"refundedQuantity" doc:"How much of it was given back, in units. null when it is not known."`
	Attributes        jsontext.Value `json:"attributes" doc:"The organization's own fields, of any name and type. Empty when it has none."`
}

// TaxLine is one tax of an order or an invoice, over all positions.
type TaxLine struct {
	Name          *string       `json:"name" doc:"What the tax is called. null when it has no name."`
	TaxRate       *value.Amount `json:"taxRate" doc:"Percent: 20 is 20%. null when it is not known."`
	TaxableAmount *value.Amount `json:"taxableAmount" doc:"The amount that is taxed. null when it is not known."`
	TaxAmount     *value.Amount `json:"taxAmount" doc:"The tax on it. null when it is not known."`
}

// Payment is one payment of an order; paidAt is null until the money came.
type Payment struct {
	ID        value.ID      `json:"id"`
	Method    *string       `json:"method" doc:"How it is paid, such as card. null when it is not known."`
	Provider  *string       `json:"provider" doc:"Who handles it. null when it is not known."`
	Reference *string       `json:"reference" doc:"What the provider calls it. null when there is none."`
	Status    *string       `json:"status" doc:"The provider's own state. null when it is not known."`
	Amount    *value.Amount `json:"amount" doc:"How much is paid. null when it is not known."`
	PaidAt    *value.Time   `json:"paidAt" doc:"When the money came. null before."`
}

// Shipment is one parcel of an order.
type Shipment struct {
	ID             value.ID       `json:"id"`
	Carrier        *string        `json:"carrier" doc:"Who carries it. null when it is not known."`
	TrackingNumber *string        `json:"trackingNumber" doc:"The carrier's number. null when there is none."`
	TrackingURL    *string        `json:"trackingUrl" doc:"Where the carrier shows its way. null when there is none."`
	Items          []ItemQuantity `json:"items" doc:"What is in it."`
	ShippedAt      *value.Time    `json:"shippedAt" doc:"When it was handed to the carrier. null before."`
	DeliveredAt    *value.Time    `json:"deliveredAt" doc:"When it arrived. null before."`
}

// Refund is money given back for an order.
type Refund struct {
	ID         value.ID       `json:"id"`
	Amount     *value.Amount  `json:"amount" doc:"How much was given back. null when it is not known."`
	Reason     *string        `json:"reason" doc:"Why. null when it is not known."`
	Items      []ItemQuantity `json:"items" doc:"What it was given back for. Empty when it is for the order as a whole."`
	RefundedAt *value.Time    `json:"refundedAt" doc:"When the money was given back. null before."`
}

// ItemQuantity is a part of an order's item in a shipment or a refund.
type ItemQuantity struct {
	ItemID   *value.ID     `json:"itemId" doc:"The item of the order. null when it is not known."`
	Quantity *value.Amount `json:"quantity" doc:"How much of it, in units. null when it is not known."`
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
	for i := range o.Shipments {
		d.quantities(at("shipments", i), o.Shipments[i].Items)
	}
	for i := range o.Refunds {
		d.quantities(at("refunds", i), o.Refunds[i].Items)
	}
	if !d.nested("items", len(in.Items), func(i int) *value.ID { return &in.Items[i].ID }) {
		return
	}
	o.Items = make([]OrderItem, len(in.Items))
	for i := range in.Items {
		item := &in.Items[i]
		path := at("items", i) + "."
		d.require(path+"name", item.Name != "")
		d.checkLine(path, item.line(), false)
		d.notNegative(path+"fulfilledQuantity", item.FulfilledQuantity)
		d.notNegative(path+"refundedQuantity", item.RefundedQuantity)
		item.Attributes = d.freeForm(path+"attributes", item.Attributes)
	}
}

func (d *draft) quantities(path string, items []ItemQuantity) {
	for i := range items {
		d.notNegative(path+"."+at("items", i)+".quantity", items[i].Quantity)
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
