package importer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
)

// shopFile is a kind of file that a shop system writes, told by its header.
type shopFile struct {
	format  Format
	content string
	header  []string // the columns that only such a file has together
	read    func(*Source, *sheet, emitter) error
}

// shopFiles lists what each shop system exports. Columns as of 2026, and those
// of Shopify's exports before 2025.
func shopFiles() []shopFile {
	return []shopFile{
		{Shopify, "products", []string{"Handle|URL handle", "Title", "Variant Price|Price"}, shopifyProducts.read},
		{Shopify, "orders", []string{"Name", "Financial Status", "Lineitem name", "Lineitem price"}, readShopifyOrders},
		{Shopify, "customers", []string{"First Name", "Last Name", "Email", "Total Spent"}, readShopifyCustomers},
		{WooCommerce, "products", []string{"Type", "SKU", "Name", "Regular price"}, wooProducts.read},
		{Medusa, "products", []string{"Product Handle", "Product Title", "Variant Title"}, medusaProducts.read},
		{Vendure, "products", []string{"name", "optionGroups", "optionValues", "sku", "price"}, vendureProducts.read},
	}
}

func (f *shopFile) matches(sh *sheet) bool {
	return !slices.ContainsFunc(f.header, func(c string) bool { return len(sh.positions(c)) == 0 })
}

// readShop reads one file of a shop system.
func (s *Source) readShop(name string, r io.Reader, emit emitter) error {
	if s.Format == Vendure {
		r = newUnpadded(r)
	}
	sh, err := openSheet(name, r, 0)
	if err != nil {
		return err
	}
	sh.warn = s.warn
	defer s.noteDropped(sh)
	var known []string
	for _, f := range shopFiles() {
		if f.format != s.Format {
			continue
		}
		if f.matches(sh) {
			sh.decimalComma = s.Format == WooCommerce // it writes amounts as the shop's language does
			return f.read(s, sh, emit)
		}
		known = append(known, f.content+" with the columns "+strings.ReplaceAll(strings.Join(f.header, ", "), "|", " or "))
	}
	return fmt.Errorf("read %s: it is no export of %s, which has %s; its columns are %s",
		name, s.Format, strings.Join(known, "; or "), strings.Join(sh.header, ", "))
}

// shopFormat returns the shop system whose file has the header; empty for none.
func shopFormat(sh *sheet) Format {
	for _, f := range shopFiles() {
		if f.matches(sh) {
			return f.format
		}
	}
	return ""
}

// The ways in which a field is read.

func text(sh *sheet, columns string) any {
	if cell := sh.get(columns); cell != "" {
		return cell
	}
	return nil
}

// code takes the apostrophe off that keeps a spreadsheet from changing digits.
func code(sh *sheet, columns string) any {
	if cell := strings.TrimPrefix(sh.get(columns), "'"); cell != "" {
		return cell
	}
	return nil
}

func amount(sh *sheet, columns string) any {
	if a := sh.amount(columns); a != nil {
		return a
	}
	return nil
}

func tags(sh *sheet, columns string) any { return splitList(sh.get(columns), ",") }

func flag(sh *sheet, columns string) any {
	if cell := sh.get(columns); cell != "" {
		return isTrue(cell)
	}
	return nil
}

// filled is whether there is anything in the columns.
func filled(sh *sheet, columns string) any { return sh.get(columns) != "" }

func isTrue(cell string) bool {
	return slices.Contains([]string{"true", "yes", "1"}, strings.ToLower(cell))
}

func onePrice(columns string) func(*Source, *sheet) (string, error) {
	return func(*Source, *sheet) (string, error) { return columns, nil }
}

// onePath is the category of a single path.
func onePath(columns string) func(*sheet) []string {
	return func(sh *sheet) []string {
		if path := categoryPath(sh.get(columns)); path != "" {
			return []string{path}
		}
		return nil
	}
}

var shopifyProducts = &layout{
	prefix: "shopify/", key: "Handle|URL handle", title: "Title",
	names: "Option%d Name", values: "Option%d Value",
	images: "Image Src|Product image URL", ownImages: "Variant Image|Variant image URL",
	shared: []field{
		{"description", "Body (HTML)|Description", text},
		{"type", "", func(sh *sheet, _ string) any {
			switch {
			case isTrue(sh.get("Gift Card")):
				return commerce.ProductGiftCard
			case strings.EqualFold(sh.get("Variant Requires Shipping|Requires shipping"), "false"):
				return commerce.ProductDigital
			}
			return commerce.ProductPhysical
		}},
		{"tags", "Tags", tags},
	},
	own: []field{
		{"sku", "Variant SKU|SKU", code},
		{"barcode", "Variant Barcode|Barcode", code},
		{"purchasePrice", "Cost per item", amount},
		{"trackInventory", "Variant Inventory Tracker|Inventory tracker", filled},
	},
	sharedAttributes: map[string]string{"handle": "Handle|URL handle", "productType": "Type|Custom Product Type"},
	ownAttributes: map[string]string{
		"compareAtPrice": "Variant Compare At Price|Compare-at price", "grams": "Variant Grams|Weight value (grams)",
		"weightUnit":        "Variant Weight Unit|Weight unit for display",
		"inventoryQuantity": "Variant Inventory Qty|Inventory quantity", "taxCode": "Variant Tax Code|Tax code",
	},
	active: func(sh *sheet) bool {
		status := sh.get("Status")
		return !strings.EqualFold(sh.get("Published|Published on online store"), "false") &&
			(status == "" || strings.EqualFold(status, "active"))
	},
	categories: onePath("Product Category|Standardized Product Type|Standard Product Type|Type|Custom Product Type"),
	brand:      func(sh *sheet) string { return sh.get("Vendor") },
	price:      onePrice("Variant Price|Price"),
}

var wooProducts = &layout{
	prefix: "woocommerce/", key: "ID|SKU", id: "ID|SKU", title: "Name",
	names: "Attribute %d name", values: "Attribute %d value(s)",
	images: "Images", ownImages: "Images", imageSeparator: ",",
	shared: []field{
		{"description", "Description|Short description", text},
		{"type", "Type", func(sh *sheet, columns string) any {
			kinds := splitList(strings.ToLower(sh.get(columns)), ",")
			switch {
			case slices.Contains(kinds, "grouped"):
				return "BUNDLE"
			case slices.Contains(kinds, "virtual"), slices.Contains(kinds, "downloadable"):
				return commerce.ProductDigital
			}
			return commerce.ProductPhysical
		}},
		{"tags", "Tags", tags},
	},
	own: []field{
		{"description", "Description|Short description", text},
		{"isActive", "Published", flag},
		{"sku", "SKU", code},
		{"barcode", "GTIN, UPC, EAN, or ISBN", code},
		{"trackInventory", "Stock", filled},
		{"reorderPoint", "Low stock amount", amount},
	},
	sharedAttributes: map[string]string{"slug": "Slug", "shortDescription": "Short description"},
	ownAttributes: map[string]string{
		"inventoryQuantity": "Stock", "inStock": "In stock?", "parent": "Parent",
		"taxClass": "Tax class", "externalUrl": "External URL", "groupedProducts": "Grouped products",
	},
	active: func(sh *sheet) bool { return isTrue(sh.get("Published")) },
	categories: func(sh *sheet) (paths []string) {
		// A comma within a name has a backslash before it.
		cell := strings.ReplaceAll(sh.get("Categories"), `\,`, "\x00")
		for _, path := range splitList(cell, ",") {
			paths = append(paths, strings.ReplaceAll(categoryPath(path), "\x00", ","))
		}
		return paths
	},
	brand: func(sh *sheet) string {
		name, _, _ := strings.Cut(sh.get("Brands"), ",")
		return strings.TrimSpace(name)
	},
	price: onePrice("Regular price"), salePrice: "Sale price", saleBegins: "Date sale price starts",
	part: func(sh *sheet) (rowPart, string) {
		kinds := splitList(strings.ToLower(sh.get("Type")), ",")
		switch {
		case slices.Contains(kinds, "variation"):
			return variantRow, sh.get("Parent")
		case slices.Contains(kinds, "variable"):
			return variableProduct, ""
		}
		return wholeProduct, ""
	},
}

var medusaProducts = &layout{
	prefix: "medusa/", key: "Product Handle|Product Id|Product Title", title: "Product Title",
	names: "Variant Option %d Name", values: "Variant Option %d Value",
	images: "Product Thumbnail;Product Image %d|Product Image %d Url",
	shared: []field{
		{"description", "Product Description", text},
		{"type", "Product Is Giftcard", func(sh *sheet, columns string) any {
			if isTrue(sh.get(columns)) {
				return commerce.ProductGiftCard
			}
			return commerce.ProductPhysical
		}},
		{"tags", "Product Tag 1", func(sh *sheet, _ string) any {
			return slices.DeleteFunc(sh.series("Product Tag %d"), func(t string) bool { return t == "" })
		}},
	},
	own: []field{
		{"sku", "Variant Sku", code},
		{"barcode", "Variant Barcode|Variant Ean|Variant Upc", code},
		{"trackInventory", "Variant Manage Inventory", flag},
	},
	sharedAttributes: map[string]string{
		"handle": "Product Handle", "subtitle": "Product Subtitle", "medusaId": "Product Id", "material": "Product Material",
		"collection": "Product Collection Id", "productType": "Product Type Id", "externalId": "Product External Id",
	},
	ownAttributes: map[string]string{
		"variantTitle": "Variant Title", "inventoryQuantity": "Variant Inventory Quantity", "weight": "Variant Weight|Product Weight",
	},
	active: func(sh *sheet) bool {
		status := sh.get("Product Status")
		return status == "" || strings.EqualFold(status, "published")
	},
	categories: func(sh *sheet) (paths []string) {
		for _, cell := range sh.series("Product Category %d") {
			if path := categoryPath(cell); path != "" {
				paths = append(paths, path)
			}
		}
		return paths
	},
	brand: func(*sheet) string { return "" },
	price: medusaPrice,
}

// medusaPrice returns the column of the prices in the organization's currency.
func medusaPrice(s *Source, sh *sheet) (string, error) {
	const prefix = "Variant Price "
	var currencies []string
	for _, column := range sh.header {
		if len(column) == len(prefix)+len("EUR") && strings.EqualFold(column[:len(prefix)], prefix) {
			currencies = append(currencies, column[len(prefix):])
		}
	}
	switch {
	case slices.Contains(currencies, s.Currency):
		return prefix + s.Currency, nil
	case s.Currency != "":
		return "", fmt.Errorf("read %s: it has no prices in %s, only in %s", sh.name, s.Currency, strings.Join(currencies, ", "))
	case len(currencies) > 1:
		return "", fmt.Errorf("read %s: it has prices in %s: name the organization's with --currency", sh.name, strings.Join(currencies, ", "))
	case len(currencies) == 1:
		return prefix + currencies[0], nil
	}
	return "", errors.New("read " + sh.name + ": it has no column Variant Price EUR, or of another currency")
}

var vendureProducts = &layout{
	prefix: "vendure/", key: "slug|name", title: "name", continues: true,
	names: "optionGroups", values: "optionValues",
	images: "assets", ownImages: "variantAssets", imageSeparator: "|",
	shared: []field{
		{"description", "description", text},
		{"tags", "facets", func(sh *sheet, columns string) any { return splitList(sh.get(columns), "|") }},
	},
	own: []field{
		{"sku", "sku", code},
		{"trackInventory", "trackInventory", flag},
	},
	sharedAttributes: map[string]string{"handle": "slug"},
	ownAttributes: map[string]string{
		"inventoryQuantity": "stockOnHand", "taxCategory": "taxCategory", "variantFacets": "variantFacets",
	},
	active: func(*sheet) bool { return true },
	categories: func(sh *sheet) []string {
		// A product's facet values of category go from the wide to the narrow.
		if path := strings.Join(facets(sh, "category"), pathSeparator); path != "" {
			return []string{path}
		}
		return nil
	},
	brand: func(sh *sheet) string { return strings.Join(facets(sh, "brand"), ", ") },
	price: onePrice("price"),
}

// facets returns the product's values of a facet.
func facets(sh *sheet, name string) (values []string) {
	for _, entry := range splitList(sh.get("facets"), "|") {
		if facet, v, ok := strings.Cut(entry, ":"); ok && strings.EqualFold(strings.TrimSpace(facet), name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}
