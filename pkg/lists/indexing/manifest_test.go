package indexing

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

var (
	testSchema = columnar.MustSchema("things",
		columnar.Column{Name: "size", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true},
	)
	testList = &List{Name: "things", Schema: testSchema, By: Monthly, On: testSchema.Col("createdAt")}
	testOrg  = value.MustID("aaaaaaaa-0000-4000-8000-000000000001")
)

func genChunk(t *rapid.T) chunk {
	return chunk{
		slot: rapid.Uint64().Draw(t, "slot"), mark: rapid.Uint64().Draw(t, "mark"),
		size: rapid.IntRange(0, maxChunk).Draw(t, "size"),
	}
}

func genPart(t *rapid.T, number int32) part {
	p := part{number: number, sealed: rapid.Bool().Draw(t, "sealed"), counted: rapid.IntRange(0, 1e6).Draw(t, "counted"), live: 3}
	p.summary.Count = rapid.IntRange(0, 5).Draw(t, "count")
	if p.summary.Count > 0 {
		p.summary.Visible = columnar.Range{Min: rapid.Int64().Draw(t, "min"), Max: rapid.Int64().Draw(t, "max")}
	}
	times := columnar.TimeRange{Nulls: rapid.IntRange(0, p.summary.Count).Draw(t, "nulls")}
	if times.Nulls < p.summary.Count {
		times.Range = columnar.Range{Min: -5, Max: rapid.Int64().Draw(t, "time")}
	}
	p.summary.Times = []columnar.TimeRange{times}
	for range rapid.IntRange(0, 3).Draw(t, "segments") {
		s := segment{rows: rapid.IntRange(1, 1e6).Draw(t, "rows"), tombstones: 1}
		for range rapid.IntRange(1, 3).Draw(t, "chunks") {
			c := genChunk(t)
			s.chunks = append(s.chunks, c)
			s.groups[0] += c.size
		}
		p.segments = append(p.segments, s)
	}
	return p
}

func genManifest() *rapid.Generator[*manifest] {
	return rapid.Custom(func(t *rapid.T) *manifest {
		m := &manifest{covered: rapid.Uint64().Draw(t, "covered")}
		m.rebuild[3] = rapid.Byte().Draw(t, "rebuild")
		for n := range rapid.IntRange(0, 3).Draw(t, "parts") {
			m.parts = append(m.parts, genPart(t, int32(n*7-3)))
		}
		for range rapid.IntRange(0, 3).Draw(t, "free") {
			m.free = append(m.free, slot{genChunk(t), value.Time(rapid.Int64().Draw(t, "since"))})
		}
		return m
	})
}

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genManifest().Draw(t, "manifest")
		got, err := decodeManifest(testOrg, testList, m.encode(testOrg, testList.Name))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if diff := cmp.Diff(m, got, cmp.AllowUnexported(manifest{}, part{}, segment{}, chunk{}, slot{})); diff != "" {
			t.Errorf("written and read (-want +got):\n%s", diff)
		}
	})
}

func TestAnAlteredManifestIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := genManifest().Draw(t, "manifest").encode(testOrg, testList.Name)
		altered := bytes.Clone(data)
		switch at := rapid.IntRange(0, len(data)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			altered[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			altered = altered[:at]
		case 2:
			altered = append(altered, data[at:]...)
		}
		if m, err := decodeManifest(testOrg, testList, altered); !Damaged(err) {
			t.Errorf("got %+v, %v; want an error that means a rebuild", m, err)
		}
	})
}

func TestAManifestOfAnotherListIsRefused(t *testing.T) {
	m := &manifest{covered: 7}
	other := value.MustID("bbbbbbbb-0000-4000-8000-000000000002")
	for name, data := range map[string][]byte{
		"another organization's": m.encode(other, testList.Name),
		"another list's":         m.encode(testOrg, "thing"),
	} {
		if _, err := decodeManifest(testOrg, testList, data); !errors.Is(err, errManifest) {
			t.Errorf("%s: got %v, want %v", name, err, errManifest)
		}
	}
}

func TestASealedPartOfAnotherSchemaIsRefused(t *testing.T) {
	m := &manifest{parts: []part{{number: 1, sealed: true, summary: columnar.Summary{Times: []columnar.TimeRange{{}, {}}}}}}
	if _, err := decodeManifest(testOrg, testList, m.encode(testOrg, testList.Name)); !errors.Is(err, errManifest) {
		t.Errorf("a summary of two times for a list of one: got %v, want %v", err, errManifest)
	}
}

func TestARebuildIsReadAsItWasWritten(t *testing.T) {
	b := &building{manifest: manifest{covered: 9, rebuild: testOrg, parts: []part{}}, shard: 3, after: "x#1"}
	data := b.encode(testOrg, testList.Name)
	got, err := decodeBuilding(testOrg, testList, data)
	if err != nil || got.shard != b.shard || got.after != b.after || got.covered != b.covered || got.rebuild != b.rebuild {
		t.Errorf("got %+v, %v; want %+v", got, err, b)
	}
	for i := range data {
		altered := bytes.Clone(data)
		altered[i] ^= 4
		if _, err := decodeBuilding(testOrg, testList, altered); !Damaged(err) {
			t.Errorf("byte %d altered: got %v, want an error that means a rebuild", i, err)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	m := &manifest{covered: 300, parts: []part{{number: 2, sealed: true, summary: columnar.Summary{Count: 1, Times: []columnar.TimeRange{{}}}, segments: []segment{
		{rows: 4, groups: [columnar.Groups]int{5, 6}, chunks: []chunk{{1, 2, 11}}},
	}}}, free: []slot{{chunk{3, 4, 5}, 6}}}
	f.Add(m.encode(testOrg, testList.Name))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeManifest(testOrg, testList, data)
		if err != nil {
			if !Damaged(err) {
				t.Errorf("%x: error %v does not mean a rebuild", data, err)
			}
			return
		}
		if _, err := decodeManifest(testOrg, testList, got.encode(testOrg, testList.Name)); err != nil {
			t.Errorf("%x: read, written and read again: %v", data, err)
		}
	})
}
