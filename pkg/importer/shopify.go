package importer

import (
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// shopifyProducts reads Shopify's product export, one product per variant.
// The rows of a handle are consecutive: the first holds the fields that the
// variants share, and a row without a price only adds an image.
func shopifyProducts(name string, r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		sh, err := openSheet(name, r, "Handle", "Title", "Option1 Name", "Option1 Value", "Variant Price")
		if err != nil {
			yield(Record{}, err)
			return
		}
		var group *listing
		for err := range sh.rows() {
			if err == nil && (group == nil || sh.get("Handle") != group.handle) {
				if !group.emit(yield) {
					return
				}
				group = newListing(sh)
			}
			if err == nil {
				err = group.add(sh)
			}
			if err != nil && !yield(Record{}, err) || ends(err) {
				return
			}
		}
		group.emit(yield)
	}
}

// listing is one handle: what its variants share, and the variants.
type listing struct {
	handle      string
	title       string
	description *string
	kind        string
	active      bool
	tags        []string
	attributes  map[string]string
	options     []string // names of the options
	images      []string
	variants    []variant
}

type variant struct {
	place        Place
	id           value.ID
	name         string
	sku, barcode *string
	image        string
	cost, price  *value.Amount
	tracked      bool
	attributes   map[string]any
}

func newListing(sh *sheet) *listing {
	return &listing{
		handle: sh.get("Handle"), title: sh.get("Title"), description: sh.text("Body (HTML)"), kind: shopifyType(sh),
		active: isTrue(sh.get("Published")), tags: splitList(sh.get("Tags"), ","),
		attributes: map[string]string{"handle": sh.get("Handle"), "vendor": sh.get("Vendor"), "productType": sh.get("Type")},
		options:    []string{sh.get("Option1 Name"), sh.get("Option2 Name"), sh.get("Option3 Name")},
	}
}

func shopifyType(sh *sheet) string {
	switch {
	case isTrue(sh.get("Gift Card")):
		return string(commerce.ProductGiftCard)
	case strings.EqualFold(sh.get("Variant Requires Shipping"), "false"):
		return string(commerce.ProductDigital)
	default:
		return string(commerce.ProductPhysical)
	}
}

func isTrue(cell string) bool { return strings.EqualFold(cell, "true") }

// splitList parts a cell, trims the parts and drops empty and repeated ones.
func splitList(cell, separator string) []string {
	parts := []string{}
	for part := range strings.SplitSeq(cell, separator) {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

func (l *listing) add(sh *sheet) (err error) {
	if image := sh.get("Image Src"); image != "" {
		l.images = append(l.images, image)
	}
	if sh.get("Variant Price") == "" {
		return nil
	}
	if l.handle == "" {
		return rejectField(sh.place(), "Handle", "is required")
	}
	v := variant{
		place: sh.place(), sku: sh.text("Variant SKU"), barcode: sh.text("Variant Barcode"), image: sh.get("Variant Image"),
		tracked: sh.get("Variant Inventory Tracker") != "",
	}
	if v.price, err = sh.amount("Variant Price"); err != nil {
		return err
	}
	if v.cost, err = sh.amount("Cost per item"); err != nil {
		return err
	}
	l.describe(&v, sh)
	l.variants = append(l.variants, v)
	return nil
}

// describe gives the variant its identifier, name and attributes. The
// identifier comes from the handle and the options' values: it outlives a new
// order of the rows, a renamed title and a changed price.
func (l *listing) describe(v *variant, sh *sheet) {
	key, options := "shopify/"+l.handle, map[string]any{}
	v.name = l.title
	for i, column := range []string{"Option1 Value", "Option2 Value", "Option3 Value"} {
		chosen := sh.get(column)
		if chosen == "" || l.options[i] == "Title" && chosen == "Default Title" {
			continue
		}
		key += "\x1f" + chosen
		v.name += " - " + chosen
		if l.options[i] != "" {
			options[l.options[i]] = chosen
		}
	}
	v.id = value.DeriveID(namespace, key)
	texts := map[string]string{
		"compareAtPrice": sh.get("Variant Compare At Price"), "grams": sh.get("Variant Grams"),
		"weightUnit": sh.get("Variant Weight Unit"), "inventoryQuantity": sh.get("Variant Inventory Qty"),
		"taxCode": sh.get("Variant Tax Code"),
	}
	maps.Copy(texts, l.attributes)
	v.attributes = present(texts)
	if len(options) > 0 {
		v.attributes["options"] = options
	}
}

// emit yields the variants, each with its own image before the listing's.
func (l *listing) emit(yield func(Record, error) bool) bool {
	if l == nil {
		return true
	}
	for _, v := range l.variants {
		images := []string{}
		for _, image := range append([]string{v.image}, l.images...) {
			if image != "" && !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
		if !yield(put(commerce.KindProduct, v.place, object(
			"id", v.id, "name", v.name, "description", l.description, "type", l.kind, "sku", v.sku, "barcode", v.barcode,
			"unit", "PIECE", "images", images, "purchasePrice", v.cost, "sellingPrice", v.price, "isActive", l.active,
			"trackInventory", v.tracked, "attributes", v.attributes, "tags", l.tags,
		)), nil) {
			return false
		}
	}
	return true
}
