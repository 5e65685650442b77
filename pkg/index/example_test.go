package index_test

import (
	"fmt"

	"github.com/commerce-integration/service/pkg/fold"
	"github.com/commerce-integration/service/pkg/index"
)

func Example() {
	schema := index.MustSchema("product",
		index.Column{Name: "categoryId", Type: index.Keyword},
		index.Column{Name: "isActive", Type: index.Bool},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
		index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
		index.Column{Name: "sku", Type: index.Text, Search: true, Sort: true, Match: true},
	)
	name, sku := schema.Col("name"), schema.Col("sku")
	view := index.NewView(schema)
	view.Apply([]index.Document{
		schema.Build([16]byte{15: 1}, 0).Text(name, "Linen shirt").Text(sku, "LS-1").Document(1, 1),
		schema.Build([16]byte{15: 2}, 0).Text(name, "Wool shirt").Text(sku, "WS-1").Document(1, 1),
		schema.Build([16]byte{15: 3}, 0).Text(sku, "SHIRT-3").Document(1, 1),
	})
	page := view.Query(index.Query{
		Filter:  index.Not(index.In(sku, "ws-1")),
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

// A list that is kept as a segment is read without its text until a query needs it.
func ExampleView_Load() {
	products := index.MustSchema("product",
		index.Column{Name: "brandId", Type: index.Keyword},
		index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
	)
	brand, name := products.Col("brandId"), products.Col("name")
	encoded := index.EncodeSegment(products, []index.Document{
		products.Build([16]byte{1}, 0).Keyword(brand, "b1").Text(name, "Linen shirt").Document(1, 1),
		products.Build([16]byte{2}, 0).Keyword(brand, "b1").Text(name, "Oak table").Document(1, 1),
	})

	segment, err := index.DecodeSegment(products, encoded.Groups[index.Core])
	if err != nil {
		panic(err)
	}
	view := index.NewView(products)
	view.Load(segment)
	fmt.Println(view.Query(index.Query{Filter: index.In(brand, "b1")}).Total)

	search := index.Query{Search: fold.Tokens("shirt")}
	if products.Needs(&search).Has(index.SearchText) {
		if err := view.Fill(segment, index.SearchText, encoded.Groups[index.SearchText]); err != nil {
			panic(err)
		}
	}
	fmt.Println(view.Query(search).Total)
	// Output:
	// 2
	// 1
}
