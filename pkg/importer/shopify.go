package importer

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// readShopify reads Shopify's product export, one product per variant. The
// rows of a handle are consecutive: the first holds the fields that the
// variants share, and a row without a price only adds an image.
func readShopify(name string, r io.Reader, emit emitter) error {
	sh, err := openSheet(name, r, "Handle", "Title", "Option1 Name", "Option1 Value", "Variant Price")
	if err != nil {
		return err
	}
	var group *listing
	err = sh.each(emit, func() {
		if group == nil || sh.get("Handle") != group.handle {
			sh.err = group.emit(emit)
			group = newListing(sh)
		}
		if sh.err == nil {
			group.add(sh)
		}
	})
	if err != nil {
		return err
	}
	return group.emit(emit)
}

// listing is one handle: what its variants share, and the variants.
type listing struct {
	handle, title string
	options       []string // names of the options
	images        []string
	attributes    map[string]any
	shared        []any // names and values of the fields that are equal in all variants
	variants      []variant
}

type variant struct {
	place  Place
	image  string
	fields []any // names and values of its own fields
}

func newListing(sh *sheet) *listing {
	kind := commerce.ProductPhysical
	switch {
	case isTrue(sh.get("Gift Card")):
		kind = commerce.ProductGiftCard
	case strings.EqualFold(sh.get("Variant Requires Shipping"), "false"):
		kind = commerce.ProductDigital
	}
	return &listing{
		handle: sh.get("Handle"), title: sh.get("Title"),
		options:    []string{sh.get("Option1 Name"), sh.get("Option2 Name"), sh.get("Option3 Name")},
		attributes: sh.texts(map[string]string{"handle": "Handle", "vendor": "Vendor", "productType": "Type"}),
		shared: []any{
			"description", sh.text("Body (HTML)"), "type", kind, "unit", "PIECE",
			"isActive", isTrue(sh.get("Published")), "tags", splitList(sh.get("Tags"), ","),
		},
	}
}

func isTrue(cell string) bool { return strings.EqualFold(cell, "true") }

// splitList divides a cell, trims the texts and drops empty and repeated ones.
func splitList(cell, separator string) []string {
	texts := []string{}
	for text := range strings.SplitSeq(cell, separator) {
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

func (l *listing) add(sh *sheet) {
	if image := sh.get("Image Src"); image != "" {
		l.images = append(l.images, image)
	}
	if sh.get("Variant Price") == "" {
		return
	}
	if l.handle == "" {
		sh.reject("Handle", "is required")
	}
	id, name, attributes := l.describe(sh)
	fields := []any{
		"id", id, "name", name, "sku", sh.text("Variant SKU"), "barcode", sh.text("Variant Barcode"),
		"sellingPrice", sh.amount("Variant Price"), "purchasePrice", sh.amount("Cost per item"),
		"trackInventory", sh.get("Variant Inventory Tracker") != "", "attributes", attributes,
	}
	if sh.err == nil {
		l.variants = append(l.variants, variant{sh.place(), sh.get("Variant Image"), fields})
	}
}

// describe gives the variant its identifier, name and attributes. The
// identifier comes from the handle and the options' values: it outlives a new
// order of the rows, a renamed title and a changed price.
func (l *listing) describe(sh *sheet) (id value.ID, name string, attributes map[string]any) {
	key, options := "shopify/"+l.handle, map[string]any{}
	name = l.title
	for i, column := range []string{"Option1 Value", "Option2 Value", "Option3 Value"} {
		chosen := sh.get(column)
		if chosen == "" || l.options[i] == "Title" && chosen == "Default Title" {
			continue
		}
		key += "\x1f" + chosen
		name += " - " + chosen
		if l.options[i] != "" {
			options[l.options[i]] = chosen
		}
	}
	attributes = sh.texts(map[string]string{
		"compareAtPrice": "Variant Compare At Price", "grams": "Variant Grams", "weightUnit": "Variant Weight Unit",
		"inventoryQuantity": "Variant Inventory Qty", "taxCode": "Variant Tax Code",
	})
	maps.Copy(attributes, l.attributes)
	if len(options) > 0 {
		attributes["options"] = options
	}
	return value.DeriveID(namespace, key), name, attributes
}

// emit emits the variants, each with its own image before the listing's.
func (l *listing) emit(emit emitter) error {
	if l == nil {
		return nil
	}
	for _, v := range l.variants {
		images := []string{}
		for _, image := range append([]string{v.image}, l.images...) {
			if image != "" && !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
		fields := slices.Concat(v.fields, l.shared, []any{"images", images})
		if err := emit(put(commerce.KindProduct, v.place, object(fields...)), nil); err != nil {
			return err
		}
	}
	return nil
}
