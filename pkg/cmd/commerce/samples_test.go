package main

import (
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

func TestASecondImportOfTheSameFilesChangesNothing(t *testing.T) {
	var files []string
	for _, name := range []string{"apparel.csv", "home-and-garden.csv", "jewelery.csv"} {
		files = append(files, samples(t, "shopify/"+name))
	}
	t.Parallel()
	s := newOrganization(t)
	args := append([]string{"import", "--url", s.BaseURL, "--token", s.JWT}, files...)
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
