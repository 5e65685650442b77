package importer

import (
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// shopifyProducts reads Shopify's product export, one product per variant.
// The rows of a handle stand together: the first carries what the variants
// share, and a row without a price only adds an image.
func shopifyProducts(name string, r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		sh, err := openSheet(name, r, "Handle", "Title", "Option1 Name", "Option1 Value", "Variant Price")
		if err != nil {
			yield(Record{}, err)
			return
		}
		var group *listing
		for {
			err := sh.next()
			if errors.Is(err, io.EOF) {
				group.emit(yield)
				return
			}
			if err == nil && (group == nil || sh.get("Handle") != group.handle) {
				if !group.emit(yield) {
					return
				}
				group = newListing(sh)
			}
			if err == nil {
				err = group.add(sh)
			}
			if err != nil && (!yield(Record{}, err) || ends(err)) {
				return
			}
		}
	}
}

// listing is one handle: what its variants share, and the variants.
type listing struct {
	handle   string
	shared   product
	options  []string // names of the options
	images   []string
	variants []variant
}

type variant struct {
	product product
	image   string
	place   Place
}

func newListing(sh *sheet) *listing {
	l := &listing{handle: sh.get("Handle"), shared: product{
		Name: sh.get("Title"), Description: sh.text("Body (HTML)"), Type: shopifyType(sh), Unit: "PIECE",
		IsActive: isTrue(sh.get("Published")), Tags: splitList(sh.get("Tags"), ","),
		Attributes: present{"handle": sh.get("Handle"), "vendor": sh.get("Vendor"), "productType": sh.get("Type")}.set(),
	}}
	for _, column := range []string{"Option1 Name", "Option2 Name", "Option3 Name"} {
		l.options = append(l.options, sh.get(column))
	}
	return l
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

func (l *listing) add(sh *sheet) error {
	if image := sh.get("Image Src"); image != "" {
		l.images = append(l.images, image)
	}
	if sh.get("Variant Price") == "" {
		return nil
	}
	if l.handle == "" {
		return rejectField(sh.place(), "Handle", "is required")
	}
	price, err := value.ParseAmount(sh.get("Variant Price"))
	if err != nil {
		return rejectField(sh.place(), "Variant Price", "%s", err)
	}
	p := l.shared
	p.SellingPrice = &price
	if cost := sh.get("Cost per item"); cost != "" {
		a, err := value.ParseAmount(cost)
		if err != nil {
			return rejectField(sh.place(), "Cost per item", "%s", err)
		}
		p.PurchasePrice = &a
	}
	p.SKU, p.Barcode = sh.text("Variant SKU"), sh.text("Variant Barcode")
	p.TrackInventory = sh.get("Variant Inventory Tracker") != ""
	l.describe(&p, sh)
	l.variants = append(l.variants, variant{product: p, image: sh.get("Variant Image"), place: sh.place()})
	return nil
}

// describe gives the variant its identifier, name and attributes. The
// identifier comes from the handle and the options' values: it outlives a new
// order of the rows, a renamed title and a changed price.
func (l *listing) describe(p *product, sh *sheet) {
	key, options := "shopify/"+l.handle, map[string]any{}
	for i, column := range []string{"Option1 Value", "Option2 Value", "Option3 Value"} {
		chosen := sh.get(column)
		if chosen == "" || l.options[i] == "Title" && chosen == "Default Title" {
			continue
		}
		key += "\x1f" + chosen
		p.Name += " - " + chosen
		if l.options[i] != "" {
			options[l.options[i]] = chosen
		}
	}
	p.ID = value.DeriveID(namespace, key)
	attributes := present{
		"compareAtPrice": sh.get("Variant Compare At Price"), "grams": sh.get("Variant Grams"),
		"weightUnit": sh.get("Variant Weight Unit"), "inventoryQuantity": sh.get("Variant Inventory Qty"),
		"taxCode": sh.get("Variant Tax Code"),
	}.set()
	for name, shared := range l.shared.Attributes {
		attributes[name] = shared
	}
	if len(options) > 0 {
		attributes["options"] = options
	}
	p.Attributes = attributes
}

// emit yields the variants, each with its own image before the listing's.
func (l *listing) emit(yield func(Record, error) bool) bool {
	if l == nil {
		return true
	}
	for _, v := range l.variants {
		v.product.Images = []string{}
		for _, image := range append([]string{v.image}, l.images...) {
			if image != "" && !slices.Contains(v.product.Images, image) {
				v.product.Images = append(v.product.Images, image)
			}
		}
		if !yield(put(commerce.KindProduct, v.place, v.product)) {
			return false
		}
	}
	return true
}
