package importer_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops/importer"
	"github.com/go-json-experiment/json"
)

// samples returns the directory of the sample data, which is kept beside the
// checkout and not in it.
func samples(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the sample data is not here: %v", err)
	}
	return dir
}

// readAll returns what a source yields, rejections apart.
func readAll(t *testing.T, format importer.Format, kind commerce.Kind, paths ...string) ([]importer.Record, []*importer.Rejection) {
	t.Helper()
	source, err := importer.Open(format, kind, paths, nil)
	if err != nil {
		t.Fatalf("open %v: %v", paths, err)
	}
	var records []importer.Record
	var rejected []*importer.Rejection
	for record, err := range source.Records() {
		var bad *importer.Rejection
		switch {
		case errors.As(err, &bad):
			rejected = append(rejected, bad)
		case err != nil:
			t.Fatalf("read %v: %v", paths, err)
		default:
			records = append(records, record)
		}
	}
	return records, rejected
}

func decode[T any](t *testing.T, records []importer.Record, kind commerce.Kind) []T {
	t.Helper()
	var all []T
	for _, r := range records {
		if r.Kind != kind {
			continue
		}
		var v T
		if err := json.Unmarshal(r.Body, &v); err != nil {
			t.Fatalf("decode %s: %v\n%s", r.Place, err, r.Body)
		}
		all = append(all, v)
	}
	return all
}

func sum[T any](t *testing.T, items []T, of func(T) value.Amount) string {
	t.Helper()
	var total value.Amount
	for _, item := range items {
		next, ok := total.Add(of(item))
		if !ok {
			t.Fatal("the sum is out of range")
		}
		total = next
	}
	return total.String()
}

func tally[T any, K cmp.Ordered](items []T, of func(T) K) map[K]int {
	counts := map[K]int{}
	for _, item := range items {
		counts[of(item)]++
	}
	return counts
}

func TestNorthwindHoldsEveryRowOfTheFiles(t *testing.T) {
	records, rejected := readAll(t, importer.Northwind, "", samples(t, "northwind"))
	if len(rejected) != 0 {
		t.Fatalf("rejected %d rows, first %v", len(rejected), rejected[0])
	}
	want := map[commerce.Kind]int{"category": 8, "product": 77, "customer": 91, "order": 830}
	if got := tally(records, func(r importer.Record) commerce.Kind { return r.Kind }); !maps.Equal(got, want) {
		t.Errorf("records by kind: got %v, want %v", got, want)
	}
	ids := map[value.ID]bool{}
	for _, v := range decode[struct {
		ID value.ID `json:"id"`
	}](t, records, "order") {
		ids[v.ID] = true
	}
	if len(ids) != 830 {
		t.Errorf("distinct order ids: got %d, want 830", len(ids))
	}
}

func TestNorthwindSumsAreExact(t *testing.T) {
	records, _ := readAll(t, importer.Northwind, "", samples(t, "northwind"))
	orders := decode[commerce.Order](t, records, "order")
	customers := decode[commerce.Customer](t, records, "customer")
	var items []commerce.OrderItem
	for _, o := range orders {
		items = append(items, o.Items...)
	}
	gross := func(i commerce.OrderItem) value.Amount {
		g, ok := i.Quantity.MulDiv(i.UnitPrice, value.AmountScale)
		if !ok {
			t.Fatalf("item %s: quantity %s times unitPrice %s is out of range", i.ID, i.Quantity, i.UnitPrice)
		}
		return g
	}
	for _, c := range []struct{ name, got, want string }{
		{"quantity times unit price", sum(t, items, gross), "1354458.59"},
		{"discounts", sum(t, items, func(i commerce.OrderItem) value.Amount { return *i.DiscountAmount }), "88665.5505"},
		{"freight", sum(t, orders, func(o commerce.Order) value.Amount { return o.ShippingTotal }), "64942.69"},
		{"spent by customers", sum(t, customers, func(c commerce.Customer) value.Amount { return c.TotalSpent }), "1330735.7295"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %s, want %s", c.got, c.want)
			}
		})
	}
	if len(items) != 2155 {
		t.Errorf("items: got %d, want 2155", len(items))
	}
	if got := tally(orders, func(o commerce.Order) string { return string(o.Status) }); got["COMPLETED"] != 809 || got["PROCESSING"] != 21 {
		t.Errorf("orders by status: got %v, want 809 COMPLETED and 21 PROCESSING", got)
	}
}

func TestNorthwindRowsInFull(t *testing.T) {
	records, _ := readAll(t, importer.Northwind, "", samples(t, "northwind"))
	for _, c := range []struct {
		place string
		want  []string
	}{
		{"customers.csv:2", []string{
			`"customerNumber":"ALFKI"`, `"firstName":"Maria"`, `"lastName":"Anders"`, `"type":"BUSINESS"`, `"country":"DE"`,
			`"phone":"030-0074321"`, `"metadata":{"contactTitle":"Sales Representative","fax":"030-0076545"}`,
		}},
		{"orders.csv:2", []string{
			`"orderNumber":"10248"`, `"placedAt":"1996-07-04T00:00:00.000Z"`, `"shippedAt":"1996-07-16T00:00:00.000Z"`,
			`"shippingTotal":32.38`, `"paidTotal":472.38`, `"carrier":"Federal Shipping"`,
			`"customerName":"Vins et alcools Chevalier"`, `"country":"FR"`, `"currency":"USD"`, `"source":"IMPORT"`,
		}},
		{"products.csv:6", []string{`"isActive":false`, `"sellingPrice":21.35`, `"reorderPoint":0`, `"quantityPerUnit":"36 boxes"`}},
		{"categories.csv:2", []string{`"name":"Beverages"`, `"order":1`}},
	} {
		t.Run(c.place, func(t *testing.T) {
			i := slices.IndexFunc(records, func(r importer.Record) bool { return r.Place.String() == c.place })
			if i < 0 {
				t.Errorf("no record from %s", c.place)
				return
			}
			body := string(records[i].Body)
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("got %s, want it to hold %s", body, want)
				}
			}
			if strings.Contains(body, "NULL") {
				t.Errorf("got %s, want no NULL in it", body)
			}
		})
	}
}

// smallNorthwind writes a database of one row each, with the details and the
// order row given.
func smallNorthwind(t *testing.T, detail, order string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"categories.csv":    "categoryID,categoryName,description\n1,Beverages,NULL\n",
		"products.csv":      "productID,productName,categoryID,unitPrice,discontinued\n11,Queso,1,21.00,0\n",
		"customers.csv":     "customerID,companyName,contactName,country\nVINET,Vins,Isabel de Castro,France\n",
		"order_details.csv": "orderID,productID,unitPrice,quantity,discount\n" + detail + "\n",
		"orders.csv":        "orderID,customerID,orderDate,shippedDate,freight,shipCountry\n" + order + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const goodOrder = "1,VINET,1996-07-04 00:00:00.000,NULL,1.00,France"

func TestNorthwindDiscountsAreReadAsDecimals(t *testing.T) {
	for _, c := range []struct{ discount, want string }{
		{"0", "0"}, {"0.15", "3.15"}, {"0.15000001", "3.15"}, {"0.15000000596046448", "3.15"}, {"0.05000000074505806", "1.05"}, {"1", "21"},
	} {
		t.Run(c.discount, func(t *testing.T) {
			records, rejected := readAll(t, importer.Northwind, "", smallNorthwind(t, "1,11,21.00,1,"+c.discount, goodOrder))
			orders := decode[commerce.Order](t, records, "order")
			if len(orders) != 1 {
				t.Errorf("discount %s: rejected %v", c.discount, rejected)
				return
			}
			if got := orders[0].Items[0].DiscountAmount.String(); got != c.want {
				t.Errorf("discount %s of 21: got %s, want %s", c.discount, got, c.want)
			}
		})
	}
}

func TestNorthwindRefusesTheOrderOfABadLine(t *testing.T) {
	for _, c := range []struct{ detail, order, field string }{
		{"1,11,21.00,1,1.5", goodOrder, "discount"},
		{"1,11,21.00,1,0.123456", goodOrder, "discount"},
		{"1,11,x,1,0", goodOrder, "unitPrice"},
		{"1,12,21.00,1,0", goodOrder, "productID"},
		{"1,11,21.00,1,0", "1,NOBOD,1996-07-04 00:00:00.000,NULL,1.00,France", "customerID"},
		{"1,11,21.00,1,0", "1,VINET,4 July,NULL,1.00,France", "orderDate"},
		{"1,11,21.00,1,0", "1,VINET,1996-07-04 00:00:00.000,NULL,1.00,Atlantis", "shipCountry"},
	} {
		t.Run(fmt.Sprintf("%v_%v", c.detail, c.order), func(t *testing.T) {
			records, rejected := readAll(t, importer.Northwind, "", smallNorthwind(t, c.detail, c.order))
			if got := decode[commerce.Order](t, records, "order"); len(got) != 0 {
				t.Errorf("%s / %s: got an order, want none", c.detail, c.order)
			}
			if len(records) != 3 {
				t.Errorf("%s / %s: got %d records, want the category, the product and the customer", c.detail, c.order, len(records))
			}
			if len(rejected) == 0 || rejected[0].Field != c.field {
				t.Errorf("%s / %s: got %v, want field %s", c.detail, c.order, rejected, c.field)
			}
		})
	}
}
