package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
)

func TestSourceSaysWhatItCannotOpen(t *testing.T) {
	file := writeFile(t, "x.jsonl", "")
	for i, c := range []struct {
		format importer.Format
		kind   commerce.Kind
		paths  []string
		want   string
	}{
		{"xml", "", []string{file}, "unknown format \"xml\""},
		{importer.CSV, "", []string{file}, "needs a kind"},
		{importer.Shopify, "product", []string{file}, "leave the kind out"},
		{importer.JSONLines, "", []string{filepath.Dir(file)}, "is a directory"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			_, err := importer.Open(c.format, c.kind, c.paths)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Open(%s, %q, %q): got %v, want %q", c.format, c.kind, c.paths, err, c.want)
			}
		})
	}
}

func TestSourceFingerprintIsOfTheContent(t *testing.T) {
	fingerprint := func(format importer.Format, kind commerce.Kind, texts ...string) string {
		var paths []string
		for _, text := range texts {
			paths = append(paths, writeFile(t, "x.jsonl", text))
		}
		source, err := importer.Open(format, kind, paths)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := source.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	same := fingerprint(importer.JSONLines, "", "ab", "c")
	if again := fingerprint(importer.JSONLines, "", "ab", "c"); again != same {
		t.Errorf("the same content elsewhere: got %s, want %s", again, same)
	}
	for name, other := range map[string]string{
		"another kind":    fingerprint(importer.JSONLines, "product", "ab", "c"),
		"another content": fingerprint(importer.JSONLines, "", "ab", "d"),
		"another cut":     fingerprint(importer.JSONLines, "", "a", "bc"),
		"another order":   fingerprint(importer.JSONLines, "", "c", "ab"),
	} {
		t.Run(name, func(t *testing.T) {
			if other == same {
				t.Error("got the same fingerprint")
			}
		})
	}
}

func TestSourceDoesNotReadAPipeBeforeItsTime(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		_, _ = w.WriteString("{\"kind\":\"product\",\"record\":{}}\n")
	}()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skipf("open files have no names here: %v", err)
	}
	source, err := importer.Open(importer.JSONLines, "", []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if fingerprint, err := source.Fingerprint(); fingerprint != "" || err != nil {
		t.Errorf("fingerprint: got %q and %v, want none", fingerprint, err)
	}
	n := 0
	for _, err := range source.Records() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("got %d records, want 1", n)
	}
}
