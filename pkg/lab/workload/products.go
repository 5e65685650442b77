package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// The words of which products are made. The lists differ in length, so that a search for a word finds many products or
// few.
const (
	Materials = "Cotton Linen Wool Steel Oak Granite Leather Silk Bamboo Glass Ceramic Brass Café Plástico"
	Things    = "Shirt Trousers Chair Table Lamp Kettle Bag Hat Gloves Mug Bowl Pillow Curtain Rug Clock Vase Jacket Scarf Teapot Shelf Mirror Blanket Basket Candle"
	qualities = "Organic Classic Slim Rustic Ergonomic Handmade Vintage Modern Light Heavy Recycled Premium"
	labels    = "sale new summer winter eco gift outdoor kids bestseller limited"
	colours   = "black white red green blue grey navy olive sand rose"
	sizes     = "XS S M L XL"
)

const description = "Made to be used every day and to last for years: carefully chosen materials, finished by hand, " +
	"easy to clean and to repair. Comes in a box of recycled cardboard with a leaflet on care in five languages."

// firstCreated is when the first product was created; the others follow a minute apart.
const firstCreated value.Time = 1_760_000_000_000

// ProductID is the id of an organization's n-th product.
func ProductID(organization value.ID, n int) value.ID {
	return value.DeriveID(organization, "product "+strconv.Itoa(n))
}

// Product is an organization's n-th product, the same on every run: about 1.1 KB of JSON.
func Product(organization value.ID, n int) *commerce.Product {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // not secret, and the same on every run
	pick := func(words string) string {
		all := strings.Fields(words)
		return all[r.IntN(len(all))]
	}
	text := func(format string, args ...any) *string {
		s := fmt.Sprintf(format, args...)
		return &s
	}
	amount := func(cents int) *value.Amount {
		a := value.Amount(cents * 100)
		return &a
	}
	id := func(kind string, of int) *value.ID {
		id := value.DeriveID(organization, kind+" "+strconv.Itoa(r.IntN(of)))
		return &id
	}
	price := 99 + r.IntN(200_00)
	created := firstCreated + value.Time(n)*60_000
	return &commerce.Product{
		ID: ProductID(organization, n), OrganizationID: organization,
		Name:        strings.Join([]string{pick(qualities), pick(Materials), pick(Things), strconv.Itoa(r.IntN(1000))}, " "),
		Description: text("%s %s", description, pick(qualities)), Type: commerce.ProductPhysical,
		SKU: text("%c%c-%06d", 'A'+n%26, 'A'+n/26%26, n), Barcode: text("%013d", 4_000_000_000_000+n*7919),
		CategoryID: id("category", 200), BrandID: id("brand", 1000), Unit: commerce.UnitPiece,
		Images:        []string{*text("https://cdn.example.com/products/%d/front.jpg", n), *text("https://cdn.example.com/products/%d/back.jpg", n)},
		PurchasePrice: amount(price * 6 / 10), SellingPrice: amount(price), TaxRate: amount(20_00),
		IsActive: r.IntN(10) > 0, TrackInventory: r.IntN(2) > 0,
		MinStockLevel: amount(5_00), MaxStockLevel: amount(500_00), ReorderPoint: amount(20_00),
		Attributes: jsontext.Value(fmt.Sprintf(`{"colour":%q,"size":%q,"weightGrams":%d}`, pick(colours), pick(sizes), 50+r.IntN(5000))),
		Tags:       []string{pick(labels), "collection " + strconv.Itoa(r.IntN(40))},
		CreatedAt:  created, UpdatedAt: created,
	}
}

// Parcel is the n-th product, shortened so that its event has a payload of about 1 KB.
func Parcel(organization value.ID, n int) *commerce.Product {
	p := Product(organization, n)
	short := description[:60]
	p.Description, p.Images = &short, p.Images[:1]
	return p
}
