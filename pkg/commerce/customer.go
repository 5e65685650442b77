package commerce

import (
	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

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

// Kind implements [Record].
func (*Customer) Kind() Kind { return KindCustomer }

// Head implements [Record].
func (c *Customer) Head() Head {
	return Head{
		ID: c.ID, OrganizationID: c.OrganizationID, SiteID: c.SiteID,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

// CustomerType tells a person from a company.
type CustomerType string

// The customer types.
const (
	CustomerIndividual CustomerType = "INDIVIDUAL"
	CustomerBusiness   CustomerType = "BUSINESS"
)

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

func (in *customerInput) complete(d *draft) Record {
	c := &in.Customer
	d.adopt(c.ID, &c.OrganizationID)
	c.Type = orDefault(c.Type, CustomerIndividual)
	c.IsActive = orValue(in.IsActive, true)
	d.count("addresses", len(c.Addresses), maxNested)
	for i := range c.Addresses {
		d.nestedID(&c.Addresses[i].ID, "addresses", i)
	}
	c.TotalSpent = orValue(in.TotalSpent, 0)
	d.tags("tags", c.Tags)
	c.Metadata = d.freeForm("metadata", c.Metadata)
	c.CreatedAt = orValue(in.CreatedAt, d.createdAt)
	c.UpdatedAt = d.updatedAt
	return c
}
