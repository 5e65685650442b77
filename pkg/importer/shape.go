package importer

import "github.com/commerce-integration/service/pkg/value"

// The shapes below hold what the samples can fill in, under the names of the
// GET shapes; a field that is left out takes the service's default or is
// derived there.

type category struct {
	ID          value.ID `json:"id"`
	Name        string   `json:"name"`
	Description *string  `json:"description,omitzero"`
	IsActive    bool     `json:"isActive"`
	Order       int      `json:"order"`
}

type product struct {
	ID             value.ID       `json:"id"`
	Name           string         `json:"name"`
	Description    *string        `json:"description,omitzero"`
	Type           string         `json:"type"`
	SKU            *string        `json:"sku,omitzero"`
	Barcode        *string        `json:"barcode,omitzero"`
	CategoryID     *value.ID      `json:"categoryId,omitzero"`
	Unit           string         `json:"unit"`
	Images         []string       `json:"images,omitzero"`
	PurchasePrice  *value.Amount  `json:"purchasePrice,omitzero"`
	SellingPrice   *value.Amount  `json:"sellingPrice,omitzero"`
	IsActive       bool           `json:"isActive"`
	TrackInventory bool           `json:"trackInventory"`
	ReorderPoint   *value.Amount  `json:"reorderPoint,omitzero"`
	Attributes     map[string]any `json:"attributes,omitzero"`
	Tags           []string       `json:"tags,omitzero"`
}

type address struct {
	ID         value.ID `json:"id"`
	FirstName  *string  `json:"firstName,omitzero"`
	LastName   *string  `json:"lastName,omitzero"`
	Company    *string  `json:"company,omitzero"`
	Line1      *string  `json:"line1,omitzero"`
	City       *string  `json:"city,omitzero"`
	State      *string  `json:"state,omitzero"`
	PostalCode *string  `json:"postalCode,omitzero"`
	Country    *string  `json:"country,omitzero"`
	Phone      *string  `json:"phone,omitzero"`
}

type customer struct {
	ID                       value.ID       `json:"id"`
	CustomerNumber           string         `json:"customerNumber"`
	ExternalRef              string         `json:"externalRef"`
	Type                     string         `json:"type"`
	FirstName                *string        `json:"firstName,omitzero"`
	LastName                 *string        `json:"lastName,omitzero"`
	CompanyName              *string        `json:"companyName,omitzero"`
	Phone                    *string        `json:"phone,omitzero"`
	IsActive                 bool           `json:"isActive"`
	Currency                 string         `json:"currency"`
	Addresses                []address      `json:"addresses"`
	DefaultBillingAddressID  value.ID       `json:"defaultBillingAddressId"`
	DefaultShippingAddressID value.ID       `json:"defaultShippingAddressId"`
	OrdersCount              int            `json:"ordersCount"`
	TotalSpent               value.Amount   `json:"totalSpent"`
	LastOrderAt              *value.Time    `json:"lastOrderAt,omitzero"`
	Metadata                 map[string]any `json:"metadata,omitzero"`
}

type order struct {
	ID                value.ID       `json:"id"`
	OrderNumber       string         `json:"orderNumber"`
	ExternalRef       string         `json:"externalRef"`
	Source            string         `json:"source"`
	Status            string         `json:"status"`
	PaymentStatus     string         `json:"paymentStatus"`
	FulfillmentStatus string         `json:"fulfillmentStatus"`
	Currency          string         `json:"currency"`
	CustomerID        value.ID       `json:"customerId"`
	CustomerName      *string        `json:"customerName,omitzero"`
	BillingAddress    address        `json:"billingAddress"`
	ShippingAddress   address        `json:"shippingAddress"`
	Items             []orderItem    `json:"items"`
	Shipments         []shipment     `json:"shipments,omitzero"`
	ShippingTotal     value.Amount   `json:"shippingTotal"`
	PaidTotal         value.Amount   `json:"paidTotal"`
	Metadata          map[string]any `json:"metadata,omitzero"`
	PlacedAt          value.Time     `json:"placedAt"`
	FulfilledAt       *value.Time    `json:"fulfilledAt,omitzero"`
	CompletedAt       *value.Time    `json:"completedAt,omitzero"`
	CreatedAt         value.Time     `json:"createdAt"`
}

type orderItem struct {
	ID                value.ID     `json:"id"`
	ProductID         value.ID     `json:"productId"`
	Name              string       `json:"name"`
	Unit              string       `json:"unit"`
	Quantity          value.Amount `json:"quantity"`
	UnitPrice         value.Amount `json:"unitPrice"`
	DiscountAmount    value.Amount `json:"discountAmount"`
	FulfilledQuantity value.Amount `json:"fulfilledQuantity"`

	gross value.Amount // quantity times unitPrice
}

type shipment struct {
	ID        value.ID      `json:"id"`
	Carrier   *string       `json:"carrier,omitzero"`
	Items     []shippedItem `json:"items"`
	ShippedAt value.Time    `json:"shippedAt"`
}

type shippedItem struct {
	ItemID   value.ID     `json:"itemId"`
	Quantity value.Amount `json:"quantity"`
}

// present is free-form text of which only what is there is kept.
type present map[string]string

func (p present) set() map[string]any {
	kept := map[string]any{}
	for name, text := range p {
		if text != "" {
			kept[name] = text
		}
	}
	return kept
}
