package workload

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// The words of which products are made.
const (
	Things    = "Shirt Trousers Chair Table Lamp Kettle Bag Hat Gloves Mug Bowl Pillow Curtain Rug Clock Vase Jacket Scarf Teapot Shelf"
	materials = "Cotton Linen Wool Steel Oak Granite Leather Silk Bamboo Glass Ceramic Brass Café Plástico"
	qualities = "Organic Classic Slim Rustic Ergonomic Handmade Vintage Modern Light Heavy Recycled Premium"
	praise    = "Made to be used every day and to last for years: carefully chosen materials, finished by hand, easy to clean."
)

// firstCreated is when the first product was created; the others follow a minute apart.
const firstCreated value.Time = 1_760_000_000_000

// ProductID is the id of an organization's n-th product.
func ProductID(organization value.ID, n int) value.ID {
	return value.DeriveID(organization, "product "+strconv.Itoa(n))
}

// PutProduct is the change that stores an organization's n-th product, the same on every run. Its event has a payload of
// about 1 KB; a silent one has no event.
func PutProduct(organization value.ID, n int, silent bool) map[string]any {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // not secret, and the same on every run
	pick := func(words string) string {
		all := strings.Fields(words)
		return all[r.IntN(len(all))]
	}
	return map[string]any{"kind": commerce.KindProduct, "op": commerce.OpPut, "silent": silent, "record": map[string]any{
		"id": ProductID(organization, n), "createdAt": firstCreated + value.Time(n)*60_000,
		"name":        strings.Join([]string{pick(qualities), pick(materials), pick(Things), strconv.Itoa(r.IntN(1000))}, " "),
		"description": praise, "sku": "SKU-" + strconv.Itoa(1_000_000+n), "barcode": strconv.Itoa(4_000_000_000_000 + n*7919),
		"categoryId":   value.DeriveID(organization, "category "+strconv.Itoa(r.IntN(200))),
		"brandId":      value.DeriveID(organization, "brand "+strconv.Itoa(r.IntN(1000))),
		"sellingPrice": float64(99+r.IntN(200_00)) / 100, "taxRate": 20, "isActive": r.IntN(10) > 0, "trackInventory": r.IntN(2) > 0,
		"attributes": map[string]any{"size": pick("XS S M L XL"), "weightGrams": 50 + r.IntN(5000)},
		"tags":       []string{pick(qualities), "collection " + strconv.Itoa(r.IntN(40))},
	}}
}
