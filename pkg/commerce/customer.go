package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/go-json-experiment/json/jsontext"
)

var customerKind = &definition{
	kind: KindCustomer, plural: "customers", text: "The people and companies who order.",
	columns: []string{
		columnSite, "type", "isActive", "firstName", "lastName", "companyName", "email", "phone", "customerNumber",
		"externalRef", "totalSpent", "ordersCount", "createdAt", "updatedAt", columnOwn,
	},
	own:    "metadata",
	search: []string{"firstName", "lastName", "companyName", "email", "phone", "customerNumber"},
	orders: []lists.Order{
		lists.By("createdAt"), lists.By("updatedAt"), lists.ByText("lastName"), lists.By("totalSpent"),
		lists.By("ordersCount"),
	},
	filters: []lists.Filter{
		siteFilter("The site of the customer."),
		{Name: "type", Description: "Person or company."},
		{Name: "isActive", Description: "Whether the customer is active."},
		{Name: "email", Description: "The customer's e-mail address."},
		{Name: "customerNumber", Description: "The customer's number."},
		{Name: "externalRef", Description: "The sender's reference."},
	},
	events: lifecycle(KindCustomer, "A customer", "A field of a customer changed.", `{"acceptsMarketing": true}`),
	sample: `{
		"id": "0192f0c2-5d6f-7c44-9d7f-84c3d5e6f708", "customerNumber": "C-10042", "firstName": "Ada", "lastName": "Okafor",
		"email": "ada.okafor@example.com", "phone": "+49 30 901820", "locale": "de-DE", "currency": "EUR",
		"addresses": [{"label": "Home", "firstName": "Ada", "lastName": "Okafor", "line1": "Lindenstr. 7",
			"city": "Berlin", "postalCode": "10969", "country": "DE"}], "ordersCount": 2, "totalSpent": 61.4}`,
}

// Customer is the GET shape of a customer.
type Customer struct {
	ID                       value.ID       `json:"id"`
	OrganizationID           value.ID       `json:"organizationId"`
	SiteID                   *value.ID      `json:"siteId" doc:"The site of the customer. null if it belongs to no site."`
	CustomerNumber           *string        `json:"customerNumber" doc:"The organization's own number. null if none."`
	ExternalRef              *string        `json:"externalRef" doc:"The id in another system. null if none."`
	Type                     CustomerType   `json:"type" doc:"Person or company; an open enumeration."`
	FirstName                *string        `json:"firstName" doc:"The first name. null if unknown."`
	LastName                 *string        `json:"lastName" doc:"The last name. null if unknown."`
	CompanyName              *string        `json:"companyName" doc:"The company's name. null if none."`
	Email                    *string        `json:"email" doc:"The e-mail address. null if unknown."`
	Phone                    *string        `json:"phone" doc:"The phone number, as text. null if unknown."`
	TaxNumber                *string        `json:"taxNumber" doc:"The VAT or tax number. null if unknown."`
	IsActive                 bool           `json:"isActive" doc:"Whether the customer may order."`
	AcceptsMarketing         bool           `json:"acceptsMarketing" doc:"Whether the customer agreed to marketing."`
	Locale                   *string        `json:"locale" doc:"The preferred language, such as de-DE. null if unknown."`
	Currency                 *Currency      `json:"currency" doc:"The preferred currency, an ISO 4217 code. null if unknown."`
	Addresses                []Address      `json:"addresses" doc:"The postal addresses, at most 1,000. Empty if none is known."`
	DefaultBillingAddressID  *value.ID      `json:"defaultBillingAddressId" doc:"The entry of addresses for invoices. null if none."`
	DefaultShippingAddressID *value.ID      `json:"defaultShippingAddressId" doc:"The entry of addresses for shipments. null if none."`
	OrdersCount              int64          `json:"ordersCount" doc:"The number of orders, as the sender counts them."`
	TotalSpent               value.Amount   `json:"totalSpent" doc:"The total spent, as the sender counts it, in the customer's currency."`
	LastOrderAt              *value.Time    `json:"lastOrderAt" doc:"The time of the last order. null before the first."`
	Tags                     []string       `json:"tags" doc:"The organization's own keywords, at most 250 of at most 255 characters."`
	Notes                    *string        `json:"notes" doc:"The organization's notes. null when there are none."`
	Metadata                 jsontext.Value `json:"metadata" doc:"The organization's own fields, of any name and type, at most 32 KiB and 8 levels deep. Empty if none."`
	CreatedAt                value.Time     `json:"createdAt"`
	UpdatedAt                value.Time     `json:"updatedAt"`
}

// Address is a postal address of a customer, an order or an invoice.
type Address struct {
	ID         value.ID `json:"id"`
	Label      *string  `json:"label" doc:"The customer's name for it, such as Home. null if none."`
	FirstName  *string  `json:"firstName" doc:"The recipient's first name. null if unknown."`
	LastName   *string  `json:"lastName" doc:"The recipient's last name. null if unknown."`
	Company    *string  `json:"company" doc:"The recipient's company. null if none."`
	Line1      *string  `json:"line1" doc:"Street and number. null if unknown."`
	Line2      *string  `json:"line2" doc:"A second line, such as the floor. null if none."`
	City       *string  `json:"city" doc:"The city. null if unknown."`
	State      *string  `json:"state" doc:"The state or province. null if none."`
	PostalCode *string  `json:"postalCode" doc:"The postal code. null if none."`
	Country    *Country `json:"country" doc:"The country, an ISO 3166-1 alpha-2 code. null if unknown."`
	Phone      *string  `json:"phone" doc:"The recipient's phone number. null if unknown."`
}

// CustomerType distinguishes a person from a company.
type CustomerType string

// Values lists what the type accepts.
func (CustomerType) Values() []string { return []string{"INDIVIDUAL", "BUSINESS"} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *CustomerType) UnmarshalText(b []byte) error { return parseEnum(t, b) }

// customerInput is a customer as a back office sends it.
type customerInput struct {
	Customer

	IsActive   *bool          `json:"isActive"`
	TotalSpent *value.Amount  `json:"totalSpent"`
	CreatedAt  *value.Time    `json:"createdAt"`
	UpdatedAt  jsontext.Value `json:"updatedAt"` // ignored
}

func (in *customerInput) complete(d *draft) any {
	c := &in.Customer
	d.adopt(c.ID, &c.OrganizationID)
	c.Type = cmp.Or(c.Type, "INDIVIDUAL")
	c.IsActive = value.Or(in.IsActive, true)
	d.nested("addresses", len(c.Addresses), func(i int) *value.ID { return &c.Addresses[i].ID })
	c.TotalSpent = value.Or(in.TotalSpent, 0)
	d.tags(c.Tags)
	c.Metadata = d.freeForm("metadata", c.Metadata)
	c.CreatedAt, c.UpdatedAt = d.times(in.CreatedAt)
	return c
}
