package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/value"
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
	SiteID                   *value.ID      `json:"siteId"`
	CustomerNumber           *string        `json:"customerNumber"`
	ExternalRef              *string        `json:"externalRef"`
	Type                     CustomerType   `json:"type"`
	FirstName                *string        `json:"firstName"`
	LastName                 *string        `json:"lastName"`
	CompanyName              *string        `json:"companyName"`
	Email                    *string        `json:"email"`
	Phone                    *string        `json:"phone"`
	TaxNumber                *string        `json:"taxNumber"`
	IsActive                 bool           `json:"isActive"`
	AcceptsMarketing         bool           `json:"acceptsMarketing"`
	Locale                   *string        `json:"locale"`
	Currency                 *Currency      `json:"currency"`
	Addresses                []Address      `json:"addresses"`
	DefaultBillingAddressID  *value.ID      `json:"defaultBillingAddressId"`
	DefaultShippingAddressID *value.ID      `json:"defaultShippingAddressId"`
	OrdersCount              int64          `json:"ordersCount"`
	TotalSpent               value.Amount   `json:"totalSpent"`
	LastOrderAt              *value.Time    `json:"lastOrderAt"`
	Tags                     []string       `json:"tags"`
	Notes                    *string        `json:"notes"`
	Metadata                 jsontext.Value `json:"metadata"`
	CreatedAt                value.Time     `json:"createdAt"`
	UpdatedAt                value.Time     `json:"updatedAt"`
}

// Address is a postal address of a customer, an order or an invoice.
type Address struct {
	ID         value.ID `json:"id"`
	Label      *string  `json:"label"`
	FirstName  *string  `json:"firstName"`
	LastName   *string  `json:"lastName"`
	Company    *string  `json:"company"`
	Line1      *string  `json:"line1"`
	Line2      *string  `json:"line2"`
	City       *string  `json:"city"`
	State      *string  `json:"state"`
	PostalCode *string  `json:"postalCode"`
	Country    *Country `json:"country"`
	Phone      *string  `json:"phone"`
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
