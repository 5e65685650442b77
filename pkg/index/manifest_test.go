package index

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
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

func genChunk(t *rapid.T) Chunk {
	return Chunk{
		Number: rapid.Uint64().Draw(t, "slot"), ContentID: rapid.Uint64().Draw(t, "mark"),
		Size: rapid.IntRange(0, 380<<10).Draw(t, "size"),
	}
}

func genPartition(t *rapid.T, number int32) *Partition {
	p := &Partition{Number: number, Sealed: rapid.Bool().Draw(t, "sealed"), Counted: rapid.IntRange(0, 1e6).Draw(t, "counted"), Live: 3}
	p.Summary.Count = rapid.IntRange(0, 5).Draw(t, "count")
	if p.Summary.Count > 0 {
		p.Summary.IDs = columnar.IDRange{First: [16]byte{1}, Last: value.NewID()}
		p.Summary.Visible = columnar.Range{Min: rapid.Int64().Draw(t, "min"), Max: rapid.Int64().Draw(t, "max")}
	}
	times := columnar.TimeRange{Nulls: rapid.IntRange(0, p.Summary.Count).Draw(t, "nulls")}
	if times.Nulls < p.Summary.Count {
		times.Range = columnar.Range{Min: -5, Max: rapid.Int64().Draw(t, "time")}
	}
	p.Summary.Times = []columnar.TimeRange{times}
	for range rapid.IntRange(0, 3).Draw(t, "segments") {
		s := &Segment{Rows: rapid.IntRange(1, 1e6).Draw(t, "rows"), Tombstones: 1}
		s.Unpacked[0] = rapid.IntRange(0, 1e6).Draw(t, "unpacked")
		for range rapid.IntRange(1, 3).Draw(t, "chunks") {
			c := genChunk(t)
			s.Chunks = append(s.Chunks, c)
			s.Groups[0] += c.Size
		}
		p.Segments = append(p.Segments, s)
	}
	return p
}

func genManifest() *rapid.Generator[*Manifest] {
	return rapid.Custom(func(t *rapid.T) *Manifest {
		m := &Manifest{Covered: rapid.Uint64().Draw(t, "covered")}
		m.RebuildID[3] = rapid.Byte().Draw(t, "rebuild")
		for n := range rapid.IntRange(0, 3).Draw(t, "parts") {
			m.Partitions = append(m.Partitions, genPartition(t, int32(n*7-3)))
			for part := range rapid.IntRange(0, 2).Draw(t, "divided") {
				p := genPartition(t, int32(n*7-3))
				p.From[part] = byte(2 - part)
				m.Partitions = slices.Insert(m.Partitions, len(m.Partitions)-part, p)
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "free") {
			m.Free = append(m.Free, FreeChunk{genChunk(t), value.Time(rapid.Int64Range(0, 1e13).Draw(t, "since"))})
		}
		return m
	})
}

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genManifest().Draw(t, "manifest")
		got, err := testKey.DecodeManifest(testKey.EncodeManifest(m))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("written and read (-want +got):\n%s", diff)
		}
	})
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
	rapid.Check(t, func(t *rapid.T) {
		data := testKey.EncodeManifest(genManifest().Draw(t, "manifest"))
		altered := bytes.Clone(data)
		switch at := rapid.IntRange(0, len(data)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			altered[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			altered = altered[:at]
		case 2:
			altered = append(altered, data[at:]...)
		}
		if m, err := testKey.DecodeManifest(altered); !Damaged(err) {
			t.Errorf("got %+v, %v; want an error that means a rebuild", m, err)
		}
	})
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
	for i := range data {
		altered := bytes.Clone(data)
		altered[i] ^= 4
		if _, err := testKey.DecodeRebuild(&StoredManifest{Body: altered}); !Damaged(err) {
			t.Errorf("byte %d altered: got %v, want an error that means a rebuild", i, err)
		}
	}
}
