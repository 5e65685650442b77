package commerce

import (
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/go-json-experiment/json/jsontext"
)

const maxLocationRef = 120 // code points

var stockKind = &definition{
	kind: KindStock, plural: "stock", text: "What is in stock: a row for each product, site and location.", identify: identifyStock,
	columns: []string{columnSite, "productId", "locationRef", "onHand", "reserved", "available", "createdAt", "updatedAt"},
	search:  []string{"locationRef"},
	orders:  []lists.Order{lists.By("updatedAt"), lists.By("createdAt"), lists.By("available"), lists.By("onHand")},
	filters: []lists.Filter{
		siteFilter("The site of the row."),
		{Name: "productId", Description: "The product."},
		{Name: "locationRef", Description: "The location."},
		{Name: "available", Kind: lists.Amount, Column: "available", Description: "The quantity that can be sold."},
	},
	events: append(lifecycle(KindStock, "A row of stock", "A quantity of a row of stock changed. Adjustments within a second are one change.", `{"onHand": 36}`),
		recordEvent{
			name: "stock.low", text: "What is available of a row fell to the product's reorderPoint or, where it has none, its minStockLevel. " +
				"A product's change, and a row's first quantity, cross nothing.",
			happened: func(was, is states) bool {
				return was.stocked && is.lowAt != nil && was.available > *is.lowAt && is.available <= *is.lowAt
			},
			example: `{"onHand": 36}`, lowAt: 40 * value.AmountScale,
		},
		recordEvent{
			name: "stock.out", text: "What is available of a row fell to 0 or below.",
			happened: func(was, is states) bool { return was.stocked && was.available > 0 && is.available <= 0 },
			example:  `{"onHand": 4}`,
		},
		recordEvent{
			name: "stock.back", text: "Something is available of a row again, which had 0 or less.",
			happened: func(was, is states) bool { return was.stocked && was.available <= 0 && is.available > 0 },
			before:   `{"onHand": 4}`, example: `{"onHand": 48}`,
		}),
	sample: `{
		"productId": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"locationRef": "Berlin, shelf 12", "onHand": 48, "reserved": 4}`,
}

// Stock is the GET shape of a row of stock. Quantities are in units of the product.
type Stock struct {
	ID             value.ID     `json:"id" doc:"It follows from the organization, product, site and location: a row is sent without it."`
	OrganizationID value.ID     `json:"organizationId"`
	ProductID      value.ID     `json:"productId" doc:"The product, which may arrive later."`
	SiteID         *value.ID    `json:"siteId" doc:"The site. null if it belongs to no site."`
	LocationRef    *string      `json:"locationRef" doc:"The warehouse, shop or shelf, in the sender's words, at most 120 characters. null if none."`
	OnHand         value.Amount `json:"onHand" doc:"The quantity that is there. It is negative where more was taken than was there."`
	Reserved       value.Amount `json:"reserved" doc:"The part of it that is promised to orders, 0 or more."`
	Available      value.Amount `json:"available" doc:"The quantity that can be sold: onHand minus reserved."`
	CreatedAt      value.Time   `json:"createdAt"`
	UpdatedAt      value.Time   `json:"updatedAt"`
}

// stockInput is a row of stock as a back office sends it.
type stockInput struct {
	Stock

	OnHand    *value.Amount  `json:"onHand"`
	Reserved  *value.Amount  `json:"reserved"`
	Available jsontext.Value `json:"available"` // ignored
	CreatedAt *value.Time    `json:"createdAt"`
	UpdatedAt jsontext.Value `json:"updatedAt"` // ignored
}

func (in *stockInput) complete(d *draft) any {
	s := &in.Stock
	d.require("productId", !s.ProductID.IsZero())
	d.require("onHand", in.OnHand != nil)
	d.location(&s.LocationRef)
	if !s.ProductID.IsZero() {
		d.derive(&s.ID, StockID(d.organization, s.ProductID, s.SiteID, s.LocationRef))
	}
	d.adopt(s.ID, &s.OrganizationID)
	s.OnHand, s.Reserved = value.Or(in.OnHand, 0), value.Or(in.Reserved, 0)
	d.notNegative("reserved", in.Reserved)
	var inRange bool
	if s.Available, inRange = s.OnHand.Add(-s.Reserved); !inRange {
		d.refuse("reserved", fault.DetailOutOfRange, "must leave onHand minus reserved in the range of quantities")
	}
	s.CreatedAt, s.UpdatedAt = d.times(in.CreatedAt)
	return s
}

// location checks a locationRef. A blank one is none.
func (d *draft) location(ref **string) {
	switch {
	case *ref == nil:
	case **ref == "":
		*ref = nil
	case utf8.RuneCountInString(**ref) > maxLocationRef:
		d.refuse("locationRef", fault.DetailOutOfRange, "must have at most %d characters", maxLocationRef)
	}
}

// stockNamespace is the namespace of rows' identifiers, a constant of the service.
var stockNamespace = value.MustID("0f3a5b8e-5c1d-5e0a-8b0e-7a2c49d1f6a4")

// StockID is the identifier of the row of an organization's product at a site and a
// location, nil where it has none.
func StockID(organization, product value.ID, site *value.ID, location *string) value.ID {
	name := organization.String() + "\n" + product.String() + "\n"
	if site != nil {
		name += site.String()
	}
	return value.DeriveID(stockNamespace, name+"\n"+value.Or(location, ""))
}

// identifyStock derives the identifier of the row that a record names. A deletion may
// give the identifier alone.
func identifyStock(d *draft, id *value.ID, m members) error {
	var row struct {
		product  value.ID
		site     *value.ID
		location *string
	}
	for name, field := range map[string]any{"productId": &row.product, "siteId": &row.site, "locationRef": &row.location} {
		if raw, ok := m.get(name); ok {
			if err := strictjson.Unmarshal(raw, field, strictjson.TrimText()); err != nil {
				return under("record."+name, err)
			}
		}
	}
	if row.product.IsZero() {
		d.require("productId", !id.IsZero())
		return nil
	}
	d.derive(id, StockID(d.organization, row.product, row.site, row.location))
	return nil
}
