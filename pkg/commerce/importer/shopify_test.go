package importer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
)

func TestShopifyExportsGiveOneProductPerVariant(t *testing.T) {
	dir := samples(t, "shopify")
	ids, brands := map[value.ID]bool{}, map[value.ID]bool{}
	for _, c := range []struct {
		file                   string
		want, inCategory, kept int // products, and those of them with a category; categories
		prices                 string
	}{{"apparel.csv", 22, 0, 0, "1295"}, {"home-and-garden.csv", 21, 21, 2, "2345.84"}, {"jewelery.csv", 23, 23, 3, "980.74"}} {
		source := open(t, importer.Shopify, filepath.Join(dir, c.file))
		records, rejected := readSource(t, source)
		if left := source.NotImported(); len(left) != 0 {
			t.Errorf("%s: %q came into no record", c.file, left)
		}
		products, categories := decode[commerce.Product](t, records, "product"), decode[commerce.Category](t, records, "category")
		if len(products) != c.want || len(rejected) != 0 {
			t.Errorf("%s: got %d products and %v, want %d", c.file, len(products), rejected, c.want)
		}
		if got := sum(t, products, func(p commerce.Product) value.Amount { return *p.SellingPrice }); got != c.prices {
			t.Errorf("%s: the prices sum to %s, want %s", c.file, got, c.prices)
		}
		inCategory := 0
		for _, p := range products {
			ids[p.ID] = true
			brands[*p.BrandID] = true
			if p.CategoryID != nil {
				inCategory++
			}
		}
		if inCategory != c.inCategory || len(categories) != c.kept {
			t.Errorf("%s: got %d products in %d categories, want %d in %d", c.file, inCategory, len(categories), c.inCategory, c.kept)
		}
	}
	if len(ids) != 66 || len(brands) != 5 {
		t.Errorf("got %d distinct ids of %d brands, want 66 of 5", len(ids), len(brands))
	}
}

const shopifyHeader = "Handle,Title,Body (HTML),Vendor,Tags,Published,Option1 Name,Option1 Value,Option2 Name,Option2 Value," +
	"Variant SKU,Variant Price,Variant Requires Shipping,Image Src,Gift Card,Variant Image,Cost per item\n"

func shopify(t *testing.T, rows ...string) ([]commerce.Product, []*importer.Rejection) {
	t.Helper()
	records, rejected := readAll(t, importer.Shopify, "", writeFile(t, "x.csv", shopifyHeader+strings.Join(rows, "\n")+"\n"))
	return decode[commerce.Product](t, records, "product"), rejected
}

func TestShopifyIdsDependOnHandleAndOptionsOnly(t *testing.T) {
	red := `mug,Mug,,,,true,Colour,Red,,,,9.99,true,,,,`
	blue := `mug,Cup,,,,true,Colour,Blue,,,,1,true,,,,`
	forth, _ := shopify(t, red, blue)
	back, _ := shopify(t, blue, red)
	if forth[0].ID != back[1].ID || forth[1].ID != back[0].ID || forth[0].ID == forth[1].ID {
		t.Errorf("got %s and %s, then %s and %s", forth[0].ID, forth[1].ID, back[0].ID, back[1].ID)
	}
}

func TestShopifyRefusesTheVariantWithABadAmountOnly(t *testing.T) {
	products, rejected := shopify(t,
		`mug,Mug,,,,true,Colour,Red,,,,9.99999,true,,,,`,
		`mug,,,,,,,Blue,,,,10,true,,,,x`,
		`mug,,,,,,,Green,,,,10,true,,,,`,
	)
	if len(products) != 1 || products[0].Name != "Mug - Green" {
		t.Errorf("got %+v, want the green one", products)
	}
	if len(rejected) != 2 || rejected[0].Field != "Variant Price" || rejected[1].Field != "Cost per item" {
		t.Errorf("got %v, want both amounts named", rejected)
	}
}

func TestShopifyKeepsOtherColumnsUpToABound(t *testing.T) {
	const most, name = 16 << 10, len("careGuide")
	for _, c := range []struct {
		size int
		want bool
	}{{most - name, true}, {most - name + 1, false}} {
		text := "Handle,Title,Variant Price,Care guide\nmug,Mug,1," + strings.Repeat("x", c.size) + "\n"
		source := open(t, importer.Shopify, writeFile(t, "x.csv", text))
		var warned []string
		source.Warn = func(place importer.Place, message string) { warned = append(warned, place.String()+" "+message) }
		records, _ := readSource(t, source)
		products := decode[commerce.Product](t, records, "product")
		if kept := strings.Contains(string(products[0].Attributes), "careGuide"); kept != c.want || len(warned) != 0 == c.want {
			t.Errorf("%d bytes: kept %v, want %v; warned %q", c.size, kept, c.want, warned)
		}
	}
}
