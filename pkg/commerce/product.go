package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	filterCategory    = "categoryId"
	filterDescendants = "includeDescendants"
)

var productKind = &definition{
	kind: KindProduct, plural: "products", text: "The catalogue: what shops sell.", noSite: noSiteShared, sites: true,
	columns: []string{
		columnSites, "categoryId", "brandId", "type", "isActive", "trackInventory", "name", "sku", "barcode", "tags",
		"sellingPrice", "purchasePrice", "createdAt", "updatedAt", columnOwn,
		columnReference,
	},
	own:    "attributes",
	search: []string{"name", "sku", "barcode", "tags"},
	orders: []lists.Order{
		lists.By("createdAt"), lists.By("updatedAt"), lists.ByText("name"), lists.ByText("sku"),
		lists.By("sellingPrice"), lists.By("purchasePrice"),
	},
	filters: []lists.Filter{
		siteFilter("The site that sells the product; a product of no site is sold at every one."),
		{Name: filterCategory, Kind: lists.ID, Description: "The product's category."},
		{
			Name: filterDescendants, Kind: lists.Bool, Default: "false",
			Description: "With categoryId: products of the categories below it too.",
		},
		{Name: "brandId", Description: "The product's brand."},
		{Name: "isActive", Description: "Whether the product is active."},
		{Name: "trackInventory", Description: "Whether the product's stock is tracked."},
		{Name: "type", Description: "The nature of the product."},
		{Name: "sku", Description: "The product's SKU."},
		{Name: "barcode", Description: "The product's barcode."},
		{
			Name: columnReference, Kind: lists.Text, Column: columnReference,
			Description: "The sender's reference, given beside the record. Compared whole, regardless of case and accents.",
		},
	},
	where:  whereProduct,
	events: lifecycle(KindProduct, "A product", "A field of a product, its externalRef, or the sites that sell it, changed.", `{"sellingPrice": 7.5}`),
	sample: `{
		"id": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "name": "Espresso cup", "description": "Porcelain, 80 ml",
		"sku": "CUP-080-W", "barcode": "4006381333931", "categoryId": "0192f0c2-3c5e-7d22-9b5d-62a1b3c4d5e6",
		"images": ["https://cdn.example.com/cup-080-w.jpg"], "purchasePrice": 3.1, "sellingPrice": 8.9, "taxRate": 20,
		"trackInventory": true, "minStockLevel": 20, "reorderPoint": 40,
		"attributes": {"color": "white", "dishwasherSafe": true}, "tags": ["kitchen", "coffee"]}`,
}

// whereProduct filters by a category, with those below it where they are asked for.
func whereProduct(w *where) (err error) {
	category, ok := w.ID(filterCategory)
	if !ok {
		return nil
	}
	within := []value.ID{category}
	if w.Bool(filterDescendants, false) {
		if within, err = descendants(w.categories, category); err != nil {
			return err
		}
	}
	w.add(columnar.In(w.schema.Col("categoryId"), lists.Keys(within)...))
	return nil
}

// Product is the GET shape of a product. Prices are in the organization's
// own currency; taxRate is percent.
type Product struct {
	ID             value.ID       `json:"id"`
	OrganizationID value.ID       `json:"organizationId"`
	Name           string         `json:"name" doc:"The name shown in shops."`
	Description    *string        `json:"description" doc:"Free text. null if none."`
	Type           ProductType    `json:"type" doc:"The type of the product; an open enumeration."`
	SKU            *string        `json:"sku" doc:"The stock keeping unit, the sender's article code. null if none."`
	Barcode        *string        `json:"barcode" doc:"The GTIN or another code, as text. null if none."`
	CategoryID     *value.ID      `json:"categoryId" doc:"The category, which may arrive later. null if none."`
	BrandID        *value.ID      `json:"brandId" doc:"The brand. null if none."`
	Unit           Unit           `json:"unit" doc:"The unit of its quantities; an open enumeration."`
	Images         []string       `json:"images" doc:"URLs of its images, at most 100, the main one first. Empty if none."`
	PurchasePrice  *value.Amount  `json:"purchasePrice" doc:"The cost of one unit, in the organization's own currency. null if unknown."`
	SellingPrice   *value.Amount  `json:"sellingPrice" doc:"The selling price of one unit, in the organization's own currency. null if it has no price; 0 is free."`
	TaxRate        *value.Amount  `json:"taxRate" doc:"Percent: 20 is 20%, from 0 to 1,000. null if unknown."`
	IsActive       bool           `json:"isActive" doc:"Whether it is on sale."`
	TrackInventory bool           `json:"trackInventory" doc:"Whether its stock is tracked."`
	MinStockLevel  *value.Amount  `json:"minStockLevel" doc:"Minimum stock, in units. null if none."`
	MaxStockLevel  *value.Amount  `json:"maxStockLevel" doc:"Maximum stock, in units. null if none."`
	ReorderPoint   *value.Amount  `json:"reorderPoint" doc:"The stock, in units, at which to reorder. null if none."`
	IsPerishable   bool           `json:"isPerishable" doc:"Whether the product is perishable."`
	ShelfLifeDays  *value.Amount  `json:"shelfLifeDays" doc:"The shelf life in days. null if unknown."`
	Attributes     jsontext.Value `json:"attributes" doc:"The organization's own fields, of any name and type, at most 32 KiB and 8 levels deep. Empty if none."`
	Tags           []string       `json:"tags" doc:"The organization's own keywords, at most 250 of at most 255 characters."`
	CreatedAt      value.Time     `json:"createdAt"`
	UpdatedAt      value.Time     `json:"updatedAt"`
}

// ProductType is the nature of a product.
type ProductType string

// ProductPhysical is the type of goods, and the default.
const ProductPhysical ProductType = "PHYSICAL"

// Values lists what the type accepts.
func (ProductType) Values() []string {
	return []string{"PHYSICAL", "DIGITAL", "SERVICE", "BUNDLE", "GIFT_CARD"}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *ProductType) UnmarshalText(b []byte) error { return parseEnum(t, b) }

// Unit is the unit of a quantity.
type Unit string

// UnitPiece is the unit of goods that are counted, and the default.
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

func (in *productInput) complete(d *draft) any {
	p := &in.Product
	d.adopt(p.ID, &p.OrganizationID)
	d.require("name", p.Name != "")
	p.Type = cmp.Or(p.Type, ProductPhysical)
	p.Unit = cmp.Or(p.Unit, UnitPiece)
	d.texts("images", p.Images, maxImages)
	d.notNegative("purchasePrice", p.PurchasePrice)
	d.notNegative("sellingPrice", p.SellingPrice)
	d.percent("taxRate", p.TaxRate)
	d.notNegative("minStockLevel", p.MinStockLevel)
	d.notNegative("maxStockLevel", p.MaxStockLevel)
	d.notNegative("reorderPoint", p.ReorderPoint)
	p.IsActive = value.Or(in.IsActive, true)
	p.Attributes = d.freeForm("attributes", p.Attributes)
	d.tags(p.Tags)
	p.CreatedAt, p.UpdatedAt = d.times(in.CreatedAt)
	return p
}
