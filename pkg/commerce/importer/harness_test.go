package importer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
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
	source, err := importer.Open(format, kind, paths)
	if err != nil {
		t.Fatalf("open %v: %v", paths, err)
	}
	return readSource(t, source)
}

func readSource(t *testing.T, source *importer.Source) ([]importer.Record, []*importer.Rejection) {
	t.Helper()
	var records []importer.Record
	var rejected []*importer.Rejection
	for record, err := range source.Records() {
		var bad *importer.Rejection
		switch {
		case errors.As(err, &bad):
			rejected = append(rejected, bad)
		case err != nil:
			t.Fatal(err)
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
