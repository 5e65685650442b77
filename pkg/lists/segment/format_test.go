package segment_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// vectorDocuments have every type of value, null or not, deleted documents, subs,
// sets and texts that are no ASCII.
func vectorDocuments() []columnar.Document {
	docs := []columnar.Document{
		everything.Build(number(1), 0).Keyword(state, "new").Keyword(sites, "a", "B").Bool(active, true).Number(price, 1250).
			Time(placed, 1_760_000_000_000).Text(name, "Crème brûlée").Text(tags, "sweet", "").Text(sku, "CB-1").Text(lastName, "Ñandú").
			Document(1_760_000_000_500, 1_760_000_001_000),
		everything.Tombstone(number(2), 0, 1_760_000_000_700, 1_760_000_002_000),
		everything.Build(number(3), 0).Document(1_760_000_000_900, 1_760_000_000_900),
		everything.Build(number(3), 4).Keyword(state, "old").Keyword(sites, "b").Bool(active, false).Number(price, -7).
			Text(ref, "X 1").Document(1_760_000_000_901, 1_760_000_000_901),
	}
	for n := range 20 {
		docs = append(docs, everything.Build(number(100+n*n), 0).Keyword(state, []string{"new", "old", "sold"}[n%3]).
			Time(placed, int64(n)<<30).Text(name, fmt.Sprint("shirt ", n)).Document(int64(n)*1000, int64(n)*1000))
	}
	return docs
}

func takeApart(t failer, g segment.Group, data []byte) segment.Parts {
	t.Helper()
	p, err := segment.TakeApart(everything, g, data)
	if err != nil {
		t.Fatalf("group %d: %v", g, err)
	}
	return p
}

func TestSegmentHasTheSpecifiedForm(t *testing.T) {
	small := columnar.MustSchema("small",
		columnar.Column{Name: "state", Type: columnar.Keyword},
		columnar.Column{Name: "open", Type: columnar.Bool},
		columnar.Column{Name: "at", Type: columnar.Time},
		columnar.Column{Name: "note", Type: columnar.Text, Match: true},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true},
	)
	e := segment.Encode(small, []columnar.Document{
		small.Build([16]byte{15: 3}, 0).Keyword(1, "b", "a").Time(3, 1007).Text(5, "x", "y").Text(4, "n").Document(1000, 1001),
		small.Tombstone([16]byte{15: 2}, 0, 900, 900),
		small.Build([16]byte{15: 1}, 9).Keyword(1, "c").Bool(2, true).Document(500, 900),
	})
	zeros := func(n int) string { return strings.Repeat("000000", n) }
	for g, want := range [][]string{
		{
			// two values, of 2 and 4 bytes: c, and a and b
			"02000000" + "0204" + "000000000000" + "0163" + "01610162",
			"02" + // the second is deleted
				zeros(15) + "010203" + // ids
				"090000" + // subs
				"f484e8" + "010303" + zeros(6) + // revisions
				"8484e9" + "030303" + zeros(6) + // visible
				"010002" + zeros(3) + // codes
				"06" + "01" + // open is null in the second and third, true in the first
				"03" + "0000ef" + "000003" + zeros(6), // at is null in the first and second, 1007
		},
		{"010105" + zeros(3) + "fe" + "fe" + "78ff79fffe" + "010103" + zeros(3) + "fe" + "fe" + "6efffe"},
	} {
		p, err := segment.TakeApart(small, segment.Group(g), e.Groups[g])
		if err != nil {
			t.Fatalf("group %d: %v", g, err)
		}
		var got []string
		for _, f := range p.Frames {
			got = append(got, hex.EncodeToString(f))
		}
		if !slices.Equal(got, want) {
			t.Errorf("group %d has frames\n%q, want\n%q", g, got, want)
		}
	}
	if want := "cseg\x03\x00"; !strings.HasPrefix(string(e.Groups[segment.Core]), want) {
		t.Errorf("core starts with %q, want %q", e.Groups[segment.Core][:6], want)
	}
}

func TestAlteredGroupsAreRefused(t *testing.T) {
	e := segment.Encode(everything, vectorDocuments())
	other := segment.Encode(everything, vectorDocuments()[1:])
	if err := read(e, segment.Text, other.Groups[segment.Text]); !errors.Is(err, columnar.ErrFormat) {
		t.Errorf("text of another segment: %v, want ErrFormat", err)
	}
	for g, data := range e.Groups {
		group := segment.Group(g)
		if err := read(e, group, data); err != nil {
			t.Fatalf("group %d as written: %v", group, err)
		}
		for n := range data {
			if err := read(e, group, data[:n]); !errors.Is(err, columnar.ErrFormat) {
				t.Errorf("group %d: the first %d of %d bytes: %v, want ErrFormat", group, n, len(data), err)
			}
			altered := bytes.Clone(data)
			altered[n] ^= 0x10
			if err := read(e, group, altered); !errors.Is(err, columnar.ErrFormat) {
				t.Errorf("group %d: byte %d altered: %v, want ErrFormat", group, n, err)
			}
		}
		for format, want := range map[byte]error{2: columnar.ErrVersion, 4: columnar.ErrNewer} {
			other := bytes.Clone(data)
			other[len("cseg")] = format
			if err := read(e, group, segment.Reseal(other)); !errors.Is(err, want) {
				t.Errorf("group %d of format %d: %v, want %v", group, format, err, want)
			}
		}
		if err := read(e, group, segment.Reseal(append(bytes.Clone(data), 0))); !errors.Is(err, columnar.ErrFormat) {
			t.Errorf("group %d with a byte more: %v, want ErrFormat", group, err)
		}
	}
}

func TestSegmentsOfOtherColumnsAreOfAnotherVersion(t *testing.T) {
	columns := everything.Columns()
	change := func(f func(c []columnar.Column) []columnar.Column) *columnar.Schema {
		return columnar.MustSchema("everything", f(slices.Clone(columns))...)
	}
	e := segment.Encode(everything, vectorDocuments())
	for _, row := range []struct {
		name   string
		schema *columnar.Schema
	}{
		{"a column more", change(func(c []columnar.Column) []columnar.Column {
			return append(c, columnar.Column{Name: "color", Type: columnar.Keyword})
		})},
		{"a column less", change(func(c []columnar.Column) []columnar.Column { return c[:len(c)-1] })},
		{"another type", change(func(c []columnar.Column) []columnar.Column { c[3].Type = columnar.Time; return c })},
		{"another flag", change(func(c []columnar.Column) []columnar.Column { c[5].Match = true; return c })},
		{"another name", change(func(c []columnar.Column) []columnar.Column { c[0].Name = "status"; return c })},
		{"another kind", columnar.MustSchema("nothing", columns...)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := segment.Decode(row.schema, e.Groups[segment.Core], nil); !errors.Is(err, columnar.ErrVersion) {
				t.Errorf("%v, want ErrVersion", err)
			}
		})
	}
}

// Every part is altered in a way that a checksum does not notice.
func TestSegmentsOfAnotherFormAreRefused(t *testing.T) {
	docs := []columnar.Document{
		everything.Build(number(1), 0).Keyword(state, "a").Number(price, 5).Text(name, "é").Document(3, 4),
		everything.Build(number(2), 0).Keyword(state, "b").Keyword(sites, "a", "b").Number(price, 6).Document(5, 6),
		everything.Tombstone(number(3), 0, 9, 9),
	}
	e := segment.Encode(everything, docs)
	for g := range e.Groups {
		group := segment.Group(g)
		parts := takeApart(t, group, e.Groups[g])
		refused := func(what string, p segment.Parts) {
			t.Helper()
			data := segment.Assemble(everything, group, p)
			err := read(e, group, data)
			if !errors.Is(err, columnar.ErrFormat) {
				t.Errorf("group %d: %s: %v, want ErrFormat", group, what, err)
			}
		}
		for n, frame := range parts.Frames {
			for cut := range frame {
				p := parts
				p.Frames = slices.Clone(parts.Frames)
				p.Frames[n] = frame[:cut]
				refused(fmt.Sprintf("frame %d cut to %d bytes", n, cut), p)
			}
			p := parts
			p.Frames = slices.Clone(parts.Frames)
			p.Frames[n] = append(bytes.Clone(frame), 0)
			refused(fmt.Sprintf("frame %d with a byte more", n), p)
			p.Frames = slices.Concat(parts.Frames[:n], parts.Frames[n+1:])
			refused(fmt.Sprintf("without frame %d", n), p)
		}
		if group == segment.Core {
			p := parts
			p.Counts[0]++
			refused("a document more", p)
			p = parts
			p.Counts[1]++
			refused("a deleted document more", p)
		}
	}
}

func TestSizesThatCannotBeAreRefusedBeforeRoomIsMade(t *testing.T) {
	e := segment.Encode(everything, vectorDocuments())
	core := takeApart(t, segment.Core, e.Groups[segment.Core])
	const documents = 1 << 20
	for _, row := range []struct {
		name, rest string
		counts     [2]uint32
	}{
		{"4,194,305 documents", "", [2]uint32{1<<22 + 1}},
		{"1,048,576 documents in no bytes", "0000000000000000", [2]uint32{documents}},
		{"dictionaries of 250 MB in 5 bytes", "8070e60e" + "05000000" + "0000000000", [2]uint32{}},
		{"dictionaries of 4 GB", "ffffffff" + "05000000" + "0000000000", [2]uint32{}},
		{"more compressed bytes than there are", "10000000" + "ffffffff", [2]uint32{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			rest, err := hex.DecodeString(row.rest)
			if err != nil {
				t.Fatal(err)
			}
			head := segment.Assemble(everything, segment.Core, segment.Parts{ID: core.ID, Counts: row.counts})
			data := seal(append(head[:len(head)-4], rest...))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = segment.Decode(everything, data, nil)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, columnar.ErrFormat) || took > 1<<20 {
				t.Errorf("%v after taking %d bytes, want ErrFormat after at most 1 MiB", err, took)
			}
		})
	}
}

// What is accepted is a segment that a view takes, and means the same when it is
// written again.
func FuzzDecodeSegment(f *testing.F) {
	for _, docs := range [][]columnar.Document{
		nil, vectorDocuments(), vectorDocuments()[1:2], vectorDocuments()[:4], vectorDocuments()[4:7],
	} {
		e := segment.Encode(everything, docs)
		core, text := takeApart(f, segment.Core, e.Groups[segment.Core]), takeApart(f, segment.Text, e.Groups[segment.Text])
		for len(core.Frames) < 2 {
			core.Frames, text.Frames = append(core.Frames, nil), append(text.Frames, nil)
		}
		f.Add(uint16(core.Counts[0]), uint16(core.Counts[1]), core.Frames[0], core.Frames[1], text.Frames[0])
	}
	f.Fuzz(func(t *testing.T, rows, tombstones uint16, dictionaries, block, words []byte) {
		rows %= 64
		core := segment.Parts{Counts: [2]uint32{uint32(rows), uint32(tombstones)}, Frames: [][]byte{dictionaries, block}}
		text := core
		text.Frames = [][]byte{words}
		if rows == 0 {
			core.Frames, text.Frames = core.Frames[:1], nil
		}
		var e segment.Encoded
		for g, p := range []segment.Parts{core, text} {
			e.Groups[g] = segment.Assemble(everything, segment.Group(g), p)
		}
		checkHostile(t, e)
	})
}

func checkHostile(t *testing.T, e segment.Encoded) {
	g, err := segment.Decode(everything, e.Groups[segment.Core], e.Groups[segment.Text])
	if err != nil {
		return
	}
	docs := g.Documents()
	for i, data := range bytesOf(docs) {
		if _, _, err := columnar.DecodeDocument(everything, data); err != nil {
			t.Fatalf("document %d of an accepted segment: %v", i, err)
		}
	}
	written := segment.Encode(everything, docs)
	again, err := segment.Decode(everything, written.Groups[segment.Core], written.Groups[segment.Text])
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(bytesOf(docs), bytesOf(again.Documents())); diff != "" {
		t.Fatalf("written again (-before +after):\n%s", diff)
	}
	applied, loaded := columnar.NewView(everything), columnar.NewView(everything)
	applied.Apply(docs)
	segment.Load(loaded, g)
	for _, col := range sortCols {
		q := columnar.Query{OrderBy: col, Limit: 100, Filter: columnar.Not(columnar.In(sku, "none")), Search: []string{"i"}}
		if diff := gocmp.Diff(applied.Query(q), loaded.Query(q)); diff != "" {
			t.Fatalf("ordered by %d (-applied +loaded):\n%s", col, diff)
		}
	}
	loaded.Apply(docs)
}
