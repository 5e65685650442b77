package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/go-json-experiment/json/jsontext"
)

var customerKind = &definition{
	kind: KindCustomer, plural: "customers",
	columns: []string{
		columnSite, "type", "isActive", "firstName", "lastName", "companyName", "email", "phone", "customerNumber",
		"externalRef", "totalSpent", "ordersCount", "createdAt", "updatedAt",
	},
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
	SiteID                   *value.ID      `json:"siteId" doc:"The site at which it is a customer. null when it is of no site."`
	CustomerNumber           *string        `json:"customerNumber" doc:"The organization's own number. null when it has none."`
	ExternalRef              *string        `json:"externalRef" doc:"What another system calls it. null when there is none."`
	Type                     CustomerType   `json:"type" doc:"Person or company; an open enumeration."`
	FirstName                *string        `json:"firstName" doc:"The first name. null when it is not known."`
	LastName                 *string        `json:"lastName" doc:"The last name. null when it is not known."`
	CompanyName              *string        `json:"companyName" doc:"The company's name. null when it has none."`
	Email                    *string        `json:"email" doc:"The e-mail address. null when it is not known."`
	Phone                    *string        `json:"phone" doc:"The phone number, as text. null when it is not known."`
	TaxNumber                *string        `json:"taxNumber" doc:"The VAT or tax number. null when it is not known."`
	IsActive                 bool           `json:"isActive" doc:"Whether it may order."`
	AcceptsMarketing         bool           `json:"acceptsMarketing" doc:"Whether it agreed to advertising."`
	Locale                   *string        `json:"locale" doc:"The language that it prefers, such as de-DE. null when it is not known."`
	Currency                 *Currency      `json:"currency" doc:"The currency that it prefers, an ISO 4217 code. null when it is not known."`
	Addresses                []Address      `json:"addresses" doc:"Its postal addresses, at most 1,000. Empty when none is known."`
	DefaultBillingAddressID  *value.ID      `json:"defaultBillingAddressId" doc:"The entry of addresses that invoices go to. null when there is none."`
	DefaultShippingAddressID *value.ID      `json:"defaultShippingAddressId" doc:"The entry of addresses that goods go to. null when there is none."`
	OrdersCount              int64          `json:"ordersCount" doc:"How many orders it placed, as the sender counts them."`
	TotalSpent               value.Amount   `json:"totalSpent" doc:"What it spent, as the sender counts it, in the customer's currency."`
	LastOrderAt              *value.Time    `json:"lastOrderAt" doc:"When it last placed an order. null before the first one."`
	Tags                     []string       `json:"tags" doc:"The organization's own keywords, at most 250 of at most 255 characters."`
	Notes                    *string        `json:"notes" doc:"The organization's notes. null when there are none."`
	Metadata                 jsontext.Value `json:"metadata" doc:"The organization's own fields, of any name and type, at most 32 KiB and 8 levels deep. Empty when it has none."`
	CreatedAt                value.Time     `json:"createdAt"`
	UpdatedAt                value.Time     `json:"updatedAt"`
}

// Address is a postal address of a customer, an order or an invoice.
type Address struct {
	ID         value.ID `json:"id"`
	Label      *string  `json:"label" doc:"What the customer calls it, such as Home. null when it has none."`
	FirstName  *string  `json:"firstName" doc:"The recipient's first name. null when it is not known."`
	LastName   *string  `json:"lastName" doc:"The recipient's last name. null when it is not known."`
	Company    *string  `json:"company" doc:"The recipient's company. null when there is none."`
	Line1      *string  `json:"line1" doc:"Street and number. null when it is not known."`
	Line2      *string  `json:"line2" doc:"What is added to it, such as a floor. null when there is nothing."`
	City       *string  `json:"city" doc:"The city. null when it is not known."`
	State      *string  `json:"state" doc:"The state or province. null when there is none."`
	PostalCode *string  `json:"postalCode" doc:"The postal code. null when there is none."`
	Country    *Country `json:"country" doc:"The country, an ISO 3166-1 alpha-2 code. null when it is not known."`
	Phone      *string  `json:"phone" doc:"The recipient's phone number. null when it is not known."`
}

// CustomerType tells a person from a company.
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
	c.IsActive = orValue(in.IsActive, true)
	d.nested("addresses", len(c.Addresses), func(i int) *value.ID { return &c.Addresses[i].ID })
	c.TotalSpent = orValue(in.TotalSpent, 0)
	d.tags(c.Tags)
	c.Metadata = d.freeForm("metadata", c.Metadata)
	c.CreatedAt, c.UpdatedAt = d.times(in.CreatedAt)
	return c
}
