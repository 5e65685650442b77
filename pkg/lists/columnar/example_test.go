package columnar_test

import (
	"fmt"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/lists/columnar"
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
