package main

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

func samples(t *testing.T, path string) string {
	t.Helper()
	full := filepath.Join("..", "..", "..", "..", "shared", "data", path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no sample data: %v", err)
	}
	return full
}

func TestNorthwindIsListedWholeAndInOrder(t *testing.T) {
	dir := samples(t, "northwind")
	t.Parallel()
	s := newOrganization(t)
	s.commerce(t, "import", "--organization", s.OrganizationID, "--format", "northwind", dir)
	for path, want := range map[string]int{"/api/categories": 8, "/api/products": 77, "/api/customers": 91, "/api/orders": 830} {
		await(t, path, func() bool { return s.total(t, path) == want })
	}
	var top page
	s.get(t, "/api/customers?orderBy=totalSpent&limit=1", &top)
	if got := top.Data[0]; got["customerNumber"] != "QUICK" || got["totalSpent"] != 115882.935 {
		t.Errorf("the first customer by totalSpent: got %v with %v, want QUICK with 115882.935", got["customerNumber"], got["totalSpent"])
	}
	if got := s.total(t, "/api/orders?search="+url.QueryEscape("frankenversand")); got != 15 {
		t.Errorf("orders found by name: got %d, want 15", got)
	}
}

func TestASecondImportOfTheSameFilesChangesNothing(t *testing.T) {
	var files []string
	for _, name := range []string{"apparel.csv", "home-and-garden.csv", "jewelery.csv"} {
		files = append(files, samples(t, "shopify/"+name))
	}
	t.Parallel()
	s := newOrganization(t)
	args := append([]string{"import", "--organization", s.OrganizationID, "--key", s.APIKey}, files...)
	newest := func() any {
		t.Helper()
		var p page
		s.get(t, "/api/products?orderBy=updatedAt&limit=1", &p)
		return p.Data[0]["updatedAt"]
	}
	s.commerce(t, args...)
	await(t, "66 products", func() bool { return s.total(t, "/api/products") == 66 })
	await(t, "5 categories", func() bool { return s.total(t, "/api/categories") == 5 })
	before := newest()
	s.commerce(t, args...)
	if after := newest(); after != before || s.total(t, "/api/products") != 66 {
		t.Errorf("after the second import: %d products, the last changed at %v; want 66, %v", s.total(t, "/api/products"), after, before)
	}
}
