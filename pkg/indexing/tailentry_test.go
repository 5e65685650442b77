package indexing

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/index"
)

func testDocument(n byte, text string) placed {
	var id [16]byte
	id[0], id[15] = n, n*7
	return placed{int32(n) - 2, testSchema.Build(id, 0).Number(1, int64(n)).Text(3, text).Document(int64(n), 0)}
}

func same(a, b placed) bool {
	return a.part == b.part && bytes.Equal(index.AppendDocument(nil, &a.Document), index.AppendDocument(nil, &b.Document))
}

func TestEntriesHoldAllDocumentsAndFitTheirBound(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", index.MaxText/16)
	for name, documents := range map[string][]placed{
		"one":                     {testDocument(1, "a")},
		"a few":                   {testDocument(1, "red shirt"), testDocument(2, "red shirt"), testDocument(3, "red shirt")},
		"larger than one entry":   {testDocument(1, long), testDocument(2, long), testDocument(3, long), testDocument(4, "b")},
		"none":                    {},
		"as large as one can be ": {testDocument(1, long)},
	} {
		var got []placed
		for _, entry := range entries(documents) {
			if len(entry) > maxEntry+16 {
				t.Errorf("%s: an entry of %d bytes, want at most %d", name, len(entry), maxEntry)
			}
			read, err := readEntry(testSchema, entry)
			if err != nil || read.rebuilt != 0 {
				t.Fatalf("%s: got rebuilt %d, %v", name, read.rebuilt, err)
			}
			got = append(got, read.documents...)
		}
		if !slices.EqualFunc(got, documents, same) {
			t.Errorf("%s: got %d documents that are not the %d written", name, len(got), len(documents))
		}
	}
}

func TestAnEntryTellsOfARebuild(t *testing.T) {
	for _, version := range []uint64{1, 200, 1 << 40} {
		if got, err := readEntry(testSchema, rebuiltEntry(version)); err != nil || got.rebuilt != version || len(got.documents) > 0 {
			t.Errorf("version %d: got %+v, %v", version, got, err)
		}
	}
}

func FuzzReadEntry(f *testing.F) {
	for _, entry := range entries([]placed{testDocument(1, "a"), testDocument(2, strings.Repeat("b", 100))}) {
		f.Add(entry)
	}
	f.Add(rebuiltEntry(3))
	f.Add([]byte{entryPacked, 4, 1, 2})
	f.Fuzz(func(t *testing.T, entry []byte) {
		read, err := readEntry(testSchema, entry)
		if err != nil {
			if !Damaged(err) {
				t.Errorf("%x: error %v does not mean a rebuild", entry, err)
			}
			return
		}
		var again []placed
		for _, e := range entries(read.documents) {
			r, err := readEntry(testSchema, e)
			if err != nil {
				t.Fatalf("%x: written again: %v", entry, err)
			}
			again = append(again, r.documents...)
		}
		if !slices.EqualFunc(again, read.documents, same) {
			t.Errorf("%x: written again as other documents", entry)
		}
	})
}
