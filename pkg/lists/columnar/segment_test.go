package columnar_test

import (
	"bytes"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// coreSegment reads a segment without its text.
func coreSegment(t failer, s *columnar.Schema, e segment.Encoded) *segment.Segment {
	t.Helper()
	g, err := segment.Decode(s, e.Groups[segment.Core], nil)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return g
}

func wholeSegment(t failer, s *columnar.Schema, e segment.Encoded) *segment.Segment {
	t.Helper()
	g, err := segment.Decode(s, e.Groups[segment.Core], e.Groups[segment.Text])
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return g
}

// bytesOf are the documents as they are written one by one.
func bytesOf(docs []columnar.Document) [][]byte {
	list := [][]byte{}
	for i := range docs {
		list = append(list, columnar.AppendDocument(nil, &docs[i]))
	}
	return list
}

// current are the records that count, as documents in the order of keys.
func (m model) current() []columnar.Document {
	docs := []columnar.Document{}
	for _, r := range m {
		docs = append(docs, r.document())
	}
	slices.SortFunc(docs, func(a, b columnar.Document) int {
		if c := bytes.Compare(a.ID[:], b.ID[:]); c != 0 {
			return c
		}
		return int(a.Sub) - int(b.Sub)
	})
	return docs
}

func checkSegment(t failer, e segment.Encoded, want []columnar.Document) {
	t.Helper()
	g := wholeSegment(t, everything, e)
	got := g.Documents()
	if a, b := bytesOf(want), bytesOf(got); !slices.EqualFunc(a, b, bytes.Equal) {
		t.Fatalf("the segment holds (-want +got):\n%s", gocmp.Diff(a, b))
	}
	tombstones := 0
	for _, d := range want {
		if d.Deleted {
			tombstones++
		}
	}
	if e.Rows != len(want) || e.Tombstones != tombstones {
		t.Fatalf("encoded %d rows and %d tombstones, want %d and %d", e.Rows, e.Tombstones, len(want), tombstones)
	}
	if g.Rows() != len(want) || g.Tombstones() != tombstones {
		t.Fatalf("decoded %d rows and %d tombstones, want %d and %d", g.Rows(), g.Tombstones(), len(want), tombstones)
	}
}

func TestMergedSegmentHoldsTheNewestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{}
		var segments []*segment.Segment
		for range rapid.IntRange(0, 4).Draw(t, "segments") {
			batch := rapid.SliceOfN(genRecord(), 0, 20).Draw(t, "batch")
			segments = append(segments, wholeSegment(t, everything, segment.Encode(everything, documents(batch))))
			m.apply(batch)
		}
		limit := int64(rapid.IntRange(0, 6).Draw(t, "limit"))
		old := func(d *columnar.Document) bool { return d.Deleted && d.Revision < limit }
		e, err := segment.Merge(everything, segments, old)
		if err != nil {
			t.Fatalf("MergeSegments: %v", err)
		}
		want := slices.DeleteFunc(m.current(), func(d columnar.Document) bool { return old(&d) })
		checkSegment(t, e, want)
		again := segment.Encode(everything, want)
		if diff := gocmp.Diff(again, e); diff != "" {
			t.Fatalf("merged otherwise than encoded at once (-encoded +merged):\n%s", diff)
		}
	})
}

func TestDividedSegmentsHoldTheNewestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{}
		var segments []*segment.Segment
		for range rapid.IntRange(1, 3).Draw(t, "segments") {
			batch := rapid.SliceOfN(genRecord(), 0, 40).Draw(t, "batch")
			segments = append(segments, wholeSegment(t, everything, segment.Encode(everything, documents(batch))))
			m.apply(batch)
		}
		rows := rapid.IntRange(1, 12).Draw(t, "rows")
		divided, err := segment.Divide(everything, segments, nil, rows)
		if err != nil {
			t.Fatalf("Divide: %v", err)
		}
		rest := m.current()
		for i, d := range divided {
			if i > 0 && (d.Rows == 0 || d.From != rest[0].ID || bytes.Compare(divided[i-1].From[:], d.From[:]) >= 0) {
				t.Fatalf("segment %d of %d rows begins with %x, want %x", i, d.Rows, d.From, rest[0].ID)
			}
			shared := 0 // rows beyond the bound share the last ID
			for d.Rows > rows && shared < d.Rows-1 && rest[d.Rows-1].ID == rest[d.Rows-2-shared].ID {
				shared++
			}
			if last := i == len(divided)-1; d.Rows-shared > rows && (!last || d.Rows > rows+rows/2) || !last && d.Rows < rows {
				t.Fatalf("segment %d of %d has %d rows, of which %d share an ID, want %d", i, len(divided), d.Rows, shared, rows)
			}
			checkSegment(t, d.Encoded, rest[:d.Rows])
			if diff := gocmp.Diff(segment.Encode(everything, rest[:d.Rows]), d.Encoded); diff != "" {
				t.Fatalf("divided otherwise than encoded (-encoded +divided):\n%s", diff)
			}
			rest = rest[d.Rows:]
		}
		if len(rest) > 0 {
			t.Fatalf("%d documents are in no segment", len(rest))
		}
	})
}
