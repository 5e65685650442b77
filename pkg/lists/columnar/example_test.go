package columnar_test

import (
	"fmt"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

func Example() {
	schema := columnar.MustSchema("product",
		columnar.Column{Name: "categoryId", Type: columnar.Keyword},
		columnar.Column{Name: "isActive", Type: columnar.Bool},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
		columnar.Column{Name: "sku", Type: columnar.Text, Search: true, Sort: true, Match: true},
	)
	name, sku := schema.Col("name"), schema.Col("sku")
	view := columnar.NewView(schema)
	view.Apply([]columnar.Document{
		schema.Build([16]byte{15: 1}, 0).Text(name, "Linen shirt").Text(sku, "LS-1").Document(1, 1),
		schema.Build([16]byte{15: 2}, 0).Text(name, "Wool shirt").Text(sku, "WS-1").Document(1, 1),
		schema.Build([16]byte{15: 3}, 0).Text(sku, "SHIRT-3").Document(1, 1),
	})
	page := view.Query(columnar.Query{
		Filter:  columnar.Not(columnar.In(sku, "ws-1")),
		Search:  fold.Tokens("Shirt"),
		OrderBy: name,
		Limit:   20,
	})
	fmt.Println(page.Total)
	for _, hit := range page.Hits {
		fmt.Println(hit.ID[15])
	}
	// Output:
	// 2
	// 1
	// 3
}

// A list that is kept as a segment is read without its text, unless a query needs it.
func ExampleView_Load() {
	products := columnar.MustSchema("product",
		columnar.Column{Name: "brandId", Type: columnar.Keyword},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
	)
	brand, name := products.Col("brandId"), products.Col("name")
	encoded := segment.Encode(products, []columnar.Document{
		products.Build([16]byte{1}, 0).Keyword(brand, "b1").Text(name, "Linen shirt").Document(1, 1),
		products.Build([16]byte{2}, 0).Keyword(brand, "b1").Text(name, "Oak table").Document(1, 1),
	})
	ask := func(q columnar.Query) int {
		view, text := columnar.NewCoreView(products), []byte(nil)
		if products.NeedsText(&q) {
			view, text = columnar.NewView(products), encoded.Groups[segment.Text]
		}
		stored, err := segment.Decode(products, encoded.Groups[segment.Core], text)
		if err != nil {
			panic(err)
		}
		segment.Load(view, stored)
		return view.Query(q).Total
	}
	fmt.Println(ask(columnar.Query{Filter: columnar.In(brand, "b1")}))
	fmt.Println(ask(columnar.Query{Search: fold.Tokens("shirt")}))
	// Output:
	// 2
	// 1
}
