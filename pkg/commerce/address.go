package commerce

import "github.com/commerce-integration/service/pkg/value"

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
