package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/go-json-experiment/json/jsontext"
)

var orderKind = &definition{
	kind: KindOrder, plural: "orders", text: "Customers' orders, with payments, shipments and refunds.", months: true,
	columns: []string{
		columnSite, "status", "paymentStatus", "fulfillmentStatus", "customerId", "currency", "orderNumber",
		"customerName", "customerEmail", "externalRef", "total", "placedAt", "createdAt", "updatedAt", columnOwn,
	},
	personal: []string{"customerName", "customerEmail", "billingAddress", "shippingAddress", "notes", "metadata"},
	own:      "metadata",
	search:   []string{"orderNumber", "customerName", "customerEmail"},
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
		{Name: "total", Kind: lists.Amount, Column: "total", Description: "The total of the order, in its currency."},
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
	SiteID            *value.ID         `json:"siteId" doc:"The site of the order. null if it belongs to no site."`
	OrderNumber       string            `json:"orderNumber" doc:"The order number."`
	ExternalRef       *string           `json:"externalRef" doc:"The id in another system. null if none."`
	Source            OrderSource       `json:"source" doc:"The sales channel; an open enumeration."`
	Status            OrderStatus       `json:"status" doc:"The state of the order as a whole; an open enumeration."`
	PaymentStatus     PaymentStatus     `json:"paymentStatus" doc:"The state of the payments; an open enumeration."`
	FulfillmentStatus FulfillmentStatus `json:"fulfillmentStatus" doc:"The state of the shipments; an open enumeration."`
	Currency          Currency          `json:"currency" doc:"The currency of all amounts, an ISO 4217 code."`
	CustomerID        *value.ID         `json:"customerId" doc:"The customer. null for a guest."`
	CustomerName      *string           `json:"customerName" doc:"The customer's name at the time of the order. null if unknown."`
	CustomerEmail     *string           `json:"customerEmail" doc:"The customer's e-mail address at the time of the order. null if unknown."`
	BillingAddress    *Address          `json:"billingAddress" doc:"The billing address. null if unknown."`
	ShippingAddress   *Address          `json:"shippingAddress" doc:"The shipping address. null if nothing is shipped or it is unknown."`
	Items             []OrderItem       `json:"items" doc:"The ordered items, at most 1,000."`
	TaxLines          []TaxLine         `json:"taxLines" doc:"The taxes of all lines, one entry for each tax."`
	Payments          []Payment         `json:"payments" doc:"The payments, pending ones included."`
	Shipments         []Shipment        `json:"shipments" doc:"The shipments."`
	Refunds           []Refund          `json:"refunds" doc:"The refunds."`
	CouponCodes       []string          `json:"couponCodes" doc:"The coupons that were applied."`
	PricesIncludeTax  bool              `json:"pricesIncludeTax" doc:"Whether unitPrice and the subtotals include tax."`
	Subtotal          value.Amount      `json:"subtotal" doc:"The sum of the lines' subtotals, before discounts."`
	DiscountTotal     value.Amount      `json:"discountTotal" doc:"The sum of all discounts."`
	ShippingTotal     value.Amount      `json:"shippingTotal" doc:"The price of shipping."`
	TaxTotal          value.Amount      `json:"taxTotal" doc:"The sum of all taxes."`
	Total             value.Amount      `json:"total" doc:"The total of the order, with shipping, taxes and discounts."`
	PaidTotal         value.Amount      `json:"paidTotal" doc:"The amount paid so far."`
	RefundedTotal     value.Amount      `json:"refundedTotal" doc:"The amount refunded so far."`
	BalanceDue        value.Amount      `json:"balanceDue" doc:"The amount still due: total minus paidTotal, at least 0."`
	Notes             *string           `json:"notes" doc:"The organization's notes. null when there are none."`
	CancelReason      *string           `json:"cancelReason" doc:"The reason of the cancellation. null if it was not cancelled or no reason is known."`
	Tags              []string          `json:"tags" doc:"The organization's own keywords, at most 250 of at most 255 characters."`
	Metadata          jsontext.Value    `json:"metadata" doc:"The organization's own fields, of any name and type, at most 32 KiB and 8 levels deep. Empty if none."`
	PlacedAt          value.Time        `json:"placedAt" doc:"When the customer placed it."`
	PaidAt            *value.Time       `json:"paidAt" doc:"When it was paid in full. null until then."`
	FulfilledAt       *value.Time       `json:"fulfilledAt" doc:"When everything was fulfilled. null until then."`
	CompletedAt       *value.Time       `json:"completedAt" doc:"When it was completed. null until then."`
	CancelledAt       *value.Time       `json:"cancelledAt" doc:"When it was cancelled. null if it was not."`
	CreatedAt         value.Time        `json:"createdAt"`
	UpdatedAt         value.Time        `json:"updatedAt"`
}

// OrderItem is one position of an order.
type OrderItem struct {
	ID                value.ID       `json:"id"`
	ProductID         *value.ID      `json:"productId" doc:"The product. null if it is not in the catalogue."`
	SKU               *string        `json:"sku" doc:"The product's SKU at the time of the order. null if none."`
	Name              string         `json:"name" doc:"The product's name at the time of the order."`
	Unit              Unit           `json:"unit" doc:"The unit of the quantity; an open enumeration."`
	Quantity          value.Amount   `json:"quantity" doc:"The ordered quantity, in units."`
	UnitPrice         value.Amount   `json:"unitPrice" doc:"The price of one unit."`
	DiscountAmount    *value.Amount  `json:"discountAmount" doc:"The discount on the whole line. null if none."`
	TaxRate           *value.Amount  `json:"taxRate" doc:"Percent: 20 is 20%, from 0 to 1,000. null if unknown."`
	TaxAmount         value.Amount   `json:"taxAmount" doc:"The tax on the line."`
	Subtotal          value.Amount   `json:"subtotal" doc:"quantity times unitPrice, before the discount."`
	Total             value.Amount   `json:"total" doc:"The total of the item: subtotal minus discount, plus tax unless prices include tax."`
	FulfilledQuantity *value.Amount  `json:"fulfilledQuantity" doc:"The fulfilled quantity, in units. null if unknown."`
	RefundedQuantity  *value.Amount  `json:"refundedQuantity" doc:"The refunded quantity, in units. null if unknown."`
	Attributes        jsontext.Value `json:"attributes" doc:"The organization's own fields, of any name and type. Empty if none."`
}

// TaxLine is one tax of an order or an invoice, over all positions.
type TaxLine struct {
	Name          *string       `json:"name" doc:"The name of the tax. null if none."`
	TaxRate       *value.Amount `json:"taxRate" doc:"Percent: 20 is 20%. null if unknown."`
	TaxableAmount *value.Amount `json:"taxableAmount" doc:"The taxable amount. null if unknown."`
	TaxAmount     *value.Amount `json:"taxAmount" doc:"The tax on the item. null if unknown."`
}

// Payment is one payment of an order; paidAt is null until the money came.
type Payment struct {
	ID        value.ID      `json:"id"`
	Method    *string       `json:"method" doc:"The payment method, such as card. null if unknown."`
	Provider  *string       `json:"provider" doc:"The payment provider. null if unknown."`
	Reference *string       `json:"reference" doc:"The provider's reference. null if none."`
	Status    *string       `json:"status" doc:"The provider's status. null if unknown."`
	Amount    *value.Amount `json:"amount" doc:"The amount. null if unknown."`
	PaidAt    *value.Time   `json:"paidAt" doc:"When the payment was received. null until then."`
}

// Shipment is one parcel of an order.
type Shipment struct {
	ID             value.ID       `json:"id"`
	Carrier        *string        `json:"carrier" doc:"The carrier. null if unknown."`
	TrackingNumber *string        `json:"trackingNumber" doc:"The tracking number. null if none."`
	TrackingURL    *string        `json:"trackingUrl" doc:"The carrier's tracking page. null if none."`
	Items          []ItemQuantity `json:"items" doc:"The items in the shipment."`
	ShippedAt      *value.Time    `json:"shippedAt" doc:"When it was handed to the carrier. null until then."`
	DeliveredAt    *value.Time    `json:"deliveredAt" doc:"When it was delivered. null until then."`
}

// Refund is money given back for an order.
type Refund struct {
	ID         value.ID       `json:"id"`
	Amount     *value.Amount  `json:"amount" doc:"The refunded amount. null if unknown."`
	Reason     *string        `json:"reason" doc:"The reason. null if unknown."`
	Items      []ItemQuantity `json:"items" doc:"The refunded items. Empty if the refund is for the whole order."`
	RefundedAt *value.Time    `json:"refundedAt" doc:"When the money was refunded. null until then."`
}

// ItemQuantity is a part of an order's item in a shipment or a refund.
type ItemQuantity struct {
	ItemID   *value.ID     `json:"itemId" doc:"The item of the order. null if unknown."`
	Quantity *value.Amount `json:"quantity" doc:"The quantity, in units. null if unknown."`
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
	o.Status = cmp.Or(o.Status, "PENDING")
	o.PaymentStatus = cmp.Or(o.PaymentStatus, "UNPAID")
	o.FulfillmentStatus = cmp.Or(o.FulfillmentStatus, "UNFULFILLED")
	d.address("billingAddress", o.BillingAddress)
	d.address("shippingAddress", o.ShippingAddress)
	in.completeNested(d)
	d.texts("couponCodes", o.CouponCodes, maxNested)
	d.tags(o.Tags)
	o.Metadata = d.freeForm("metadata", o.Metadata)
	o.CreatedAt, o.UpdatedAt = d.times(in.CreatedAt)
	o.PlacedAt = value.Or(in.PlacedAt, o.CreatedAt)
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
		shipping: value.Or(in.ShippingTotal, 0), inclusive: o.PricesIncludeTax,
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
			sum += value.Or(p.Amount, 0)
		}
	}
	return sum
}

func refunded(refunds []Refund) (sum value.Amount) {
	for _, r := range refunds {
		sum += value.Or(r.Amount, 0)
	}
	return sum
}
