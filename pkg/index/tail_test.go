package index

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func testDocument(n byte, text string) Change {
	var id [16]byte
	id[0], id[15] = n, n*7
	return Change{int32(n) - 2, testSchema.Build(id, 0).Number(1, int64(n)).Text(3, text).Document(int64(n), 0)}
}

var testKey = Key{testOrg, testList}

func same(a, b Change) bool {
	return a.Partition == b.Partition && bytes.Equal(columnar.AppendDocument(nil, &a.Document), columnar.AppendDocument(nil, &b.Document))
}

func TestEntriesHoldAllDocumentsAndFitTheirBound(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", columnar.MaxText/16)
	for name, documents := range map[string][]Change{
		"one":                     {testDocument(1, "a")},
		"a few":                   {testDocument(1, "red shirt"), testDocument(2, "red shirt"), testDocument(3, "red shirt")},
		"larger than one entry":   {testDocument(1, long), testDocument(2, long), testDocument(3, long), testDocument(4, "b")},
		"none":                    {},
		"as large as one can be ": {testDocument(1, long)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Change
			for _, entry := range PackEntries(documents) {
				if len(entry) > maxEntry+20 {
					t.Errorf("an entry of %d bytes, want at most %d", len(entry), maxEntry)
				}
				read, err := testKey.DecodeEntry(StoredEntry{Sequence: 7, Body: testKey.SealEntry(7, entry)})
				if err != nil || read.Rebuilt != 0 {
					t.Fatalf("got rebuilt %d, %v", read.Rebuilt, err)
				}
				got = append(got, read.Changes...)
			}
			if !slices.EqualFunc(got, documents, same) {
				t.Errorf("got %d documents that are not the %d written", len(got), len(documents))
			}
		})
	}
}

func TestAnEntryTellsOfARebuild(t *testing.T) {
	for _, format := range []int{Format, Format + 1} {
		list := *testList
		list.Format = format
		for _, version := range []uint64{1, 200, 1 << 40} {
			want := TailEntry{Rebuilt: version, Layout: Key{testOrg, &list}.Layout()}
			entry := testKey.SealEntry(7, Key{testOrg, &list}.RebuiltEntry(version))
			got, err := testKey.DecodeEntry(StoredEntry{Sequence: 7, Body: entry})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("format %d, version %d: %v (-want +got):\n%s", format, version, err, diff)
			}
		}
	}
}

func TestAnEntryInThePlaceOfAnotherIsRefused(t *testing.T) {
	entry := testKey.SealEntry(7, PackEntries([]Change{testDocument(1, "a")})[0])
	other := *testList
	other.Name = "others"
	for name, place := range map[string]struct {
		Key
		sequence uint64
	}{
		"another organization": {Key{value.MustID("bbbbbbbb-0000-4000-8000-000000000002"), testList}, 7},
		"another list":         {Key{testOrg, &other}, 7},
		"another sequence":     {testKey, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := place.DecodeEntry(StoredEntry{Sequence: place.sequence, Body: entry}); !errors.Is(err, errEntry) {
				t.Errorf("got %+v, %v; want %v", got, err, errEntry)
			}
		})
	}
}

func FuzzReadEntry(f *testing.F) {
	for _, entry := range PackEntries([]Change{testDocument(1, "a"), testDocument(2, strings.Repeat("b", 100))}) {
		f.Add(entry)
	}
	f.Add([]byte{entryRebuilt, 1, 3, 4})
	f.Add([]byte{entryPacked, 1, 2})
	f.Add([]byte{entryRebuilt + 1, 1, 3})
	f.Fuzz(func(t *testing.T, entry []byte) {
		entry = testKey.SealEntry(7, entry) // what the checksum lets through
		read, err := testKey.DecodeEntry(StoredEntry{Sequence: 7, Body: entry})
		if err != nil {
			if !Damaged(err) && !errors.Is(err, columnar.ErrNewer) {
				t.Errorf("%x: error %v means neither a rebuild nor a later release", entry, err)
			}
			return
		}
		var again []Change
		for _, e := range PackEntries(read.Changes) {
			r, err := testKey.DecodeEntry(StoredEntry{Sequence: 7, Body: testKey.SealEntry(7, e)})
			if err != nil {
				t.Fatalf("%x: written again: %v", entry, err)
			}
			again = append(again, r.Changes...)
		}
		if !slices.EqualFunc(again, read.Changes, same) {
			t.Errorf("%x: written again as other documents", entry)
		}
	})
}
