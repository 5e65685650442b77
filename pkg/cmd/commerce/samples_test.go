package main

import (
	"encoding/csv"
	"math/big"
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
