package index

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

var (
	testSchema = columnar.MustSchema("things",
		columnar.Column{Name: "size", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true},
		columnar.Column{Name: "state", Type: columnar.Keyword},
	)
	testList = &List{Name: "things", Schema: testSchema, By: Monthly, On: testSchema.Col("createdAt")}
	testOrg  = value.MustID("aaaaaaaa-0000-4000-8000-000000000001")
)

// testManifest has a divided and a sealed partition, segments and a free chunk.
func testManifest() *Manifest {
	sealed := &Partition{Number: 24_310, Sealed: true, Counted: 9, Live: 3, Summary: columnar.Summary{
		Count: 3, IDs: columnar.IDRange{First: [16]byte{1}, Last: [16]byte{9}}, Visible: columnar.Range{Min: -5, Max: 1 << 40},
		Times: []columnar.TimeRange{{Range: columnar.Range{Min: 1, Max: 2}, Nulls: 1}},
	}}
	later := &Partition{Number: 24_310, From: [16]byte{5}, Segments: []*Segment{
		{Rows: 7, Tombstones: 1, Groups: [segment.NumGroups]int{30, 12}, Unpacked: [segment.NumGroups]int{300, 99}, Chunks: []Chunk{{1 << 63, 7, 40}, {2, 8, 2}}},
	}}
	return &Manifest{
		Covered: 1 << 40, RebuildID: testOrg, Partitions: []*Partition{{}, sealed, later},
		Free: []FreeChunk{{Chunk{3, 9, 380 << 10}, 1_760_000_000_000}},
	}
}

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	for name, m := range map[string]*Manifest{"empty": {}, "full": testManifest()} {
		t.Run(name, func(t *testing.T) {
			got, err := testKey.DecodeManifest(testKey.EncodeManifest(m))
			if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("written and read: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestPartsOutOfOrderAreRefused(t *testing.T) {
	part := func(number int32, from byte) *Partition { return &Partition{Number: number, From: [16]byte{from}} }
	for name, parts := range map[string][]*Partition{
		"the same twice":                  {part(1, 0), part(1, 2), part(1, 2)},
		"falling IDs":                     {part(1, 0), part(1, 2), part(1, 1)},
		"falling numbers":                 {part(2, 0), part(1, 0), part(1, 1)},
		"without beginning":               {part(1, 1)},
		"without beginning after another": {part(1, 0), part(2, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := testKey.DecodeManifest(testKey.EncodeManifest(&Manifest{Partitions: parts})); !errors.Is(err, errManifest) {
				t.Errorf("got %v, want %v", err, errManifest)
			}
		})
	}
}

func TestDocumentsGoToThePartOfTheirID(t *testing.T) {
	m := &Manifest{Partitions: []*Partition{{Number: 1}, {Number: 2}, {Number: 2, From: [16]byte{3}}, {Number: 2, From: [16]byte{5}}}}
	var documents []columnar.Document
	for _, n := range []byte{5, 2, 9, 0, 3, 4} {
		documents = append(documents, testSchema.Build([16]byte{n}, 0).Document(1, 1))
	}
	for _, number := range []int32{2, 7} {
		var got [][]byte
		for p, documents := range m.Divided(number, documents) {
			ids := []byte{byte(p.Number), p.From[0]}
			for _, d := range documents {
				ids = append(ids, d.ID[0])
			}
			got = append(got, ids)
		}
		want := map[int32][][]byte{2: {{2, 0, 0, 2}, {2, 3, 3, 4}, {2, 5, 5, 9}}, 7: {{7, 0, 0, 2, 3, 4, 5, 9}}}[number]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("number %d (-want +got):\n%s", number, diff)
		}
	}
}

// TestTheManifestOfManyPartsFitsIntoAnItem divides a list that grows, at 300 B for
// each part.
func TestTheManifestOfManyPartsFitsIntoAnItem(t *testing.T) {
	for by, most := range map[Interval]int{Monthly: 80_000_000, Whole: 800_000_000} {
		list, rows, parts := &List{By: by}, 0, 0
		for ; rows < most; parts++ {
			rows += list.DividedRows(parts)
		}
		if parts*300 > 380<<10 {
			t.Errorf("%d documents of interval %d: %d parts", rows, by, parts)
		}
	}
}

func TestAnAlteredManifestIsRefused(t *testing.T) {
	data := testKey.EncodeManifest(testManifest())
	for at := range data {
		altered := bytes.Clone(data)
		altered[at] ^= 4
		for what, body := range map[string][]byte{"altered": altered, "cut": data[:at], "followed by itself": append(bytes.Clone(data), data[at:]...)} {
			if m, err := testKey.DecodeManifest(body); !Damaged(err) {
				t.Errorf("%s at %d: got %+v, %v; want an error that means a rebuild", what, at, m, err)
			}
		}
	}
}

func TestAManifestOfAnotherListIsRefused(t *testing.T) {
	m := &Manifest{Covered: 7}
	other := value.MustID("bbbbbbbb-0000-4000-8000-000000000002")
	for name, data := range map[string][]byte{
		"another organization's": Key{other, testList}.EncodeManifest(m),
		"another list's":         Key{testOrg, &List{Name: "thing", Schema: testList.Schema}}.EncodeManifest(m),
		"another format's":       Key{testOrg, &List{Name: testList.Name, Schema: testList.Schema, Format: Format + 1}}.EncodeManifest(m),
		"a rebuild's":            testKey.EncodeRebuild(&RebuildState{Manifest: *m}),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := testKey.DecodeManifest(data); !errors.Is(err, errManifest) {
				t.Errorf("got %v, want %v", err, errManifest)
			}
		})
	}
}

func TestASegmentWhoseChunksHaveAnotherSizeIsRefused(t *testing.T) {
	m := &Manifest{Partitions: []*Partition{{Number: 1, Segments: []*Segment{{Rows: 1, Chunks: []Chunk{{Size: 5}}}}}}}
	if _, err := testKey.DecodeManifest(testKey.EncodeManifest(m)); !errors.Is(err, errManifest) {
		t.Errorf("got %v, want %v", err, errManifest)
	}
}

func TestASealedPartOfAnotherSchemaIsRefused(t *testing.T) {
	m := &Manifest{Partitions: []*Partition{{Number: 1, Sealed: true, Summary: columnar.Summary{Times: []columnar.TimeRange{{}, {}}}}}}
	if _, err := testKey.DecodeManifest(testKey.EncodeManifest(m)); !errors.Is(err, errManifest) {
		t.Errorf("a summary of two times for a list of one: got %v, want %v", err, errManifest)
	}
}

func TestARebuildIsReadAsItWasWritten(t *testing.T) {
	b := &RebuildState{Manifest: Manifest{Covered: 9, RebuildID: testOrg, Partitions: []*Partition{}}, Shard: 3, After: "x#1"}
	data := testKey.EncodeRebuild(b)
	got, err := testKey.DecodeRebuild(&StoredManifest{CoveredAt: 7, Body: data})
	if err != nil || got.Shard != b.Shard || got.After != b.After || got.Covered != b.Covered || got.CoveredAt != 7 || got.RebuildID != b.RebuildID {
		t.Errorf("got %+v, %v; want %+v", got, err, b)
	}
}
