package commerce

import (
	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Product is the GET shape of a product. Prices are in the organization's
// own currency; taxRate is percent.
type Product struct {
	ID             value.ID       `json:"id"`
	OrganizationID value.ID       `json:"organizationId"`
	Name           string         `json:"name"`
	Description    *string        `json:"description"`
	Type           ProductType    `json:"type"`
	SKU            *string        `json:"sku"`
	Barcode        *string        `json:"barcode"`
	CategoryID     *value.ID      `json:"categoryId"`
	BrandID        *value.ID      `json:"brandId"`
	Unit           Unit           `json:"unit"`
	Images         []string       `json:"images"`
	PurchasePrice  *value.Amount  `json:"purchasePrice"`
	SellingPrice   *value.Amount  `json:"sellingPrice"`
	TaxRate        *value.Amount  `json:"taxRate"`
	IsActive       bool           `json:"isActive"`
	TrackInventory bool           `json:"trackInventory"`
	MinStockLevel  *value.Amount  `json:"minStockLevel"`
	MaxStockLevel  *value.Amount  `json:"maxStockLevel"`
	ReorderPoint   *value.Amount  `json:"reorderPoint"`
	IsPerishable   bool           `json:"isPerishable"`
	ShelfLifeDays  *int64         `json:"shelfLifeDays"`
	Attributes     jsontext.Value `json:"attributes"`
	Tags           []string       `json:"tags"`
	CreatedAt      value.Time     `json:"createdAt"`
	UpdatedAt      value.Time     `json:"updatedAt"`
}

// Kind implements [Record].
func (*Product) Kind() Kind { return KindProduct }

// Head implements [Record].
func (p *Product) Head() Head {
	return Head{ID: p.ID, OrganizationID: p.OrganizationID, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}
}

// ProductType is the nature of a product.
type ProductType string

// The product types.
const (
	ProductPhysical ProductType = "PHYSICAL"
	ProductDigital  ProductType = "DIGITAL"
	ProductService  ProductType = "SERVICE"
	ProductBundle   ProductType = "BUNDLE"
	ProductGiftCard ProductType = "GIFT_CARD"
)

// Values lists what the type accepts.
func (ProductType) Values() []string {
	return []string{"PHYSICAL", "DIGITAL", "SERVICE", "BUNDLE", "GIFT_CARD"}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *ProductType) UnmarshalText(b []byte) error { return parseEnum(t, b) }

// Unit is what a quantity counts.
type Unit string

// UnitPiece is the unit of what is sold by the piece, and the default.
const UnitPiece Unit = "PIECE"

// Values lists what the type accepts.
func (Unit) Values() []string {
	return []string{
		"PIECE", "BOX", "PACK", "SET", "KG", "G", "LB", "OZ", "L", "ML", "M", "CM", "M2", "M3", "HOUR", "DAY",
	}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (u *Unit) UnmarshalText(b []byte) error { return parseEnum(u, b) }

// productInput is a product as a back office sends it: the shape, with the
// fields whose absence means something.
type productInput struct {
	Product

	IsActive  *bool          `json:"isActive"`
	CreatedAt *value.Time    `json:"createdAt"`
	UpdatedAt jsontext.Value `json:"updatedAt"` // ignored
}

func (in *productInput) complete(d *draft) Record {
	p := &in.Product
	d.adopt(p.ID, &p.OrganizationID)
	d.require("name", p.Name != "")
	p.Type = orDefault(p.Type, ProductPhysical)
	p.Unit = orDefault(p.Unit, UnitPiece)
	d.texts("images", p.Images, maxImages)
	d.percent("taxRate", p.TaxRate)
	p.IsActive = orValue(in.IsActive, true)
	p.Attributes = d.freeForm("attributes", p.Attributes)
	d.tags("tags", p.Tags)
	p.CreatedAt = orValue(in.CreatedAt, d.createdAt)
	p.UpdatedAt = d.updatedAt
	return p
}
