package importer_test

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/commerce/importer"
)

var update = flag.Bool("update", false, "write the records of the example files anew")

// describe runs an import of the paths and returns what it sent, record by
// record, what it refused, what it warned of and what it left out.
func describe(t *testing.T, source *importer.Source) string {
	t.Helper()
	var out strings.Builder
	warn := func(place importer.Place, message string) { fmt.Fprintf(&out, "warning %s: %s\n", place, message) }
	source.Warn = warn
	records := func(yield func(importer.Record, error) bool) {
		for record, err := range source.Records() {
			if err == nil {
				fmt.Fprintf(&out, "%s %s %s%s\n", record.Place, record.Kind, record.Body, []byte(record.ExternalRef))
			}
			if !yield(record, err) {
				return
			}
		}
	}
	run(t, iter.Seq2[importer.Record, error](records), &outbox{}, importer.Config{Warn: warn, Refused: func(bad *importer.Rejection) error {
		fmt.Fprintf(&out, "refused %s\n        %s\n", bad, rowOf(bad))
		return nil
	}})
	fmt.Fprintf(&out, "not imported %q\n", source.NotImported())
	return out.String()
}

func TestExampleFilesGiveTheRecordsBesideThem(t *testing.T) {
	files, err := filepath.Glob("testdata/*.csv")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v and %v, want the example files", files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			format, system := importer.Format(""), "csv"
			if path == filepath.Join("testdata", "mapped.csv") {
				format = importer.CSV
			} else {
				system, _, _ = strings.Cut(filepath.Base(path), "-")
			}
			source := open(t, format, path)
			if string(source.Format) != system {
				t.Errorf("detected %s", source.Format)
			}
			got := describe(t, source)
			if again := describe(t, source); again != got {
				t.Error("the second pass gives other records")
			}
			golden := strings.TrimSuffix(path, ".csv") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("records (-want +got), -update writes them:\n%s", diff)
			}
		})
	}
}

// open opens an example; the CSV of no shop system goes with testdata/mapping.json.
func open(t testing.TB, format importer.Format, path string) *importer.Source {
	t.Helper()
	var mapping *importer.Mapping
	kind := importer.Record{}.Kind
	if format == importer.CSV {
		text, err := os.ReadFile("testdata/mapping.json")
		if err != nil {
			t.Fatal(err)
		}
		if mapping, err = importer.ParseMapping(text); err != nil {
			t.Fatal(err)
		}
		kind = mapping.Kind
	}
	source, err := importer.Open(format, kind, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	source.Mapping, source.Currency = mapping, "EUR"
	return source
}
