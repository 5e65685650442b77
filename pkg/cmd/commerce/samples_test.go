package main

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// northwind is what the test computes from the files by itself.
type northwind struct {
	gross    *big.Rat // of all lines, before discounts
	top      []customerSum
	ordersOf map[string]int // by customer number
}

type customerSum struct {
	number string
	spent  *big.Rat
}

// rows reads a CSV file as maps by column.
func rows(t *testing.T, path string) []map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader := csv.NewReader(f)
	reader.FieldsPerRecord = -1
	records, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			if i < len(record) {
				row[name] = record[i]
			}
		}
		out = append(out, row)
	}
	return out
}

// shortest reads a number as the shortest decimal of its 32-bit float, which
// is how the files' discounts were written.
func shortest(t *testing.T, text string) *big.Rat {
	t.Helper()
	f, err := strconv.ParseFloat(text, 32)
	if err != nil {
		t.Fatal(err)
	}
	return number(t, strconv.FormatFloat(f, 'f', -1, 32))
}

func readNorthwind(t *testing.T, dir string) northwind {
	t.Helper()
	n := northwind{gross: new(big.Rat), ordersOf: map[string]int{}}
	customerOf, spent := map[string]string{}, map[string]*big.Rat{}
	add := func(customer string, amount *big.Rat) {
		if spent[customer] == nil {
			spent[customer] = new(big.Rat)
		}
		spent[customer].Add(spent[customer], amount)
	}
	for _, order := range rows(t, filepath.Join(dir, "orders.csv")) {
		customerOf[order["orderID"]] = order["customerID"]
		n.ordersOf[order["customerID"]]++
		add(order["customerID"], number(t, order["freight"]))
	}
	for _, line := range rows(t, filepath.Join(dir, "order_details.csv")) {
		amount := new(big.Rat).Mul(number(t, line["unitPrice"]), number(t, line["quantity"]))
		n.gross.Add(n.gross, amount)
		discount := new(big.Rat).Mul(amount, shortest(t, line["discount"]))
		add(customerOf[line["orderID"]], amount.Sub(amount, discount))
	}
	for number, sum := range spent {
		n.top = append(n.top, customerSum{number, sum})
	}
	slices.SortFunc(n.top, func(a, b customerSum) int { return b.spent.Cmp(a.spent) })
	return n
}

// sumShopify adds up the prices of all variants.
func sumShopify(t *testing.T, files []string) *big.Rat {
	t.Helper()
	sum := new(big.Rat)
	for _, file := range files {
		for _, row := range rows(t, file) {
			if row["Variant Price"] != "" {
				sum.Add(sum, number(t, row["Variant Price"]))
			}
		}
	}
	return sum
}

// number reads an amount exactly.
func number(t *testing.T, v any) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(fmt.Sprint(v))
	if !ok {
		t.Fatalf("%v is no number", v)
	}
	return r
}

func samples(t *testing.T, path string) string {
	t.Helper()
	full := filepath.Join("..", "..", "..", "..", "shared", "data", path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no sample data: %v", err)
	}
	return full
}

func TestNorthwindOverTheAPIEqualsItsFiles(t *testing.T) {
	dir := samples(t, "northwind")
	t.Parallel()
	s := newOrganization(t)
	s.commerce(t, "import", "--organization", s.OrganizationID, "--format", "northwind", dir)
	for path, want := range map[string]int{"/api/categories": 8, "/api/products": 77, "/api/customers": 91, "/api/orders": 830} {
		await(t, path, func() bool { return s.total(t, path) == want })
	}

	files := readNorthwind(t, dir)
	lines, gross := 0, new(big.Rat)
	perCustomer := map[string]*big.Rat{}
	for _, order := range s.all(t, "/api/orders") {
		items := order["items"].([]any)
		lines += len(items)
		for _, item := range items {
			gross.Add(gross, number(t, item.(map[string]any)["subtotal"]))
		}
		customer := order["customerId"].(string)
		if perCustomer[customer] == nil {
			perCustomer[customer] = new(big.Rat)
		}
		perCustomer[customer].Add(perCustomer[customer], number(t, order["total"]))
		if order["currency"] != "USD" {
			t.Fatalf("order %v: currency %v, want USD", order["orderNumber"], order["currency"])
		}
	}
	if lines != 2155 || gross.Cmp(files.gross) != 0 {
		t.Errorf("lines %d worth %s, want 2155 worth %s", lines, gross.FloatString(4), files.gross.FloatString(4))
	}

	var top page
	s.get(t, "/api/customers?orderBy=totalSpent&limit=5", &top)
	for i, customer := range top.Data {
		if want := files.top[i]; customer["customerNumber"] != want.number || number(t, customer["totalSpent"]).Cmp(want.spent) != 0 {
			t.Errorf("customer %d by totalSpent: got %v with %v, want %s with %s",
				i+1, customer["customerNumber"], customer["totalSpent"], want.number, want.spent.FloatString(4))
		}
		if got := perCustomer[customer["id"].(string)]; got.Cmp(files.top[i].spent) != 0 {
			t.Errorf("orders of customer %v: got %s in all, want %s", customer["customerNumber"], got.FloatString(4), files.top[i].spent.FloatString(4))
		}
	}
	if got := s.total(t, "/api/orders?search="+url.QueryEscape("frankenversand")); got != files.ordersOf["FRANK"] {
		t.Errorf("orders found by name: got %d, want %d", got, files.ordersOf["FRANK"])
	}
}

func TestShopifyVariantsBecomeProducts(t *testing.T) {
	var files []string
	for _, name := range []string{"apparel.csv", "home-and-garden.csv", "jewelery.csv"} {
		files = append(files, samples(t, "shopify/"+name))
	}
	t.Parallel()
	s := newOrganization(t)
	s.commerce(t, append([]string{"import", "--organization", s.OrganizationID, "--key", s.APIKey}, files...)...)
	await(t, "66 products", func() bool { return s.total(t, "/api/products") == 66 })
	await(t, "5 categories", func() bool { return s.total(t, "/api/categories") == 5 })
	// A second import of the same files changes nothing.
	s.commerce(t, append([]string{"import", "--organization", s.OrganizationID, "--key", s.APIKey}, files...)...)
	var p page
	s.get(t, "/api/products?orderBy=updatedAt&limit=1", &p)
	before := p.Data[0]["updatedAt"]
	sum := new(big.Rat)
	for _, product := range s.all(t, "/api/products") {
		sum.Add(sum, number(t, product["sellingPrice"]))
	}
	if want := sumShopify(t, files); sum.Cmp(want) != 0 {
		t.Errorf("prices: got %s in all, want %s", sum.FloatString(4), want.FloatString(4))
	}
	s.get(t, "/api/products?orderBy=updatedAt&limit=1", &p)
	if p.Data[0]["updatedAt"] != before || p.Meta.Total != 66 {
		t.Errorf("after the second import: %d products, the last changed at %v; want 66, %v", p.Meta.Total, p.Data[0]["updatedAt"], before)
	}
}
