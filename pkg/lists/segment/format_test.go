package segment_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

var update = flag.Bool("update", false, "write testdata anew")

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

const vectorFile = "testdata/segment-1.txt"

// The file holds groups and the documents in them, each as hexadecimal digits
// behind its name. What it holds must be read for as long as there is format 1.
func TestSegmentsOfTheVectorFileAreReadAndWritten(t *testing.T) {
	docs := vectorDocuments()
	e := segment.Encode(everything, docs)
	if *update {
		writeVector(t, e)
	}
	file, err := os.ReadFile(filepath.FromSlash(vectorFile))
	if err != nil {
		t.Fatal(err)
	}
	var kept segment.Encoded
	want := [][]byte{}
	for line := range strings.Lines(string(file)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "document" {
			want = append(want, data)
			continue
		}
		kept.Groups[slices.Index([]string{"core", "search", "other"}, name)] = data
	}
	got := slices.Collect(wholeSegment(t, everything, kept).Documents())
	if diff := gocmp.Diff(want, bytesOf(got)); diff != "" {
		t.Errorf("the file's segment holds (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(want, bytesOf(docs)); diff != "" {
		t.Errorf("the file's documents are not the test's (-file +test):\n%s", diff)
	}
	// Another release of zstd may compress otherwise.
	for g, data := range kept.Groups {
		want, got := takeApart(t, columnar.ColumnGroup(g), data), takeApart(t, columnar.ColumnGroup(g), e.Groups[g])
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("group %d is written otherwise (-file +now):\n%s", g, diff)
		}
	}
}

func writeVector(t *testing.T, e segment.Encoded) {
	var b strings.Builder
	for g, name := range []string{"core", "search", "other"} {
		fmt.Fprintf(&b, "%s %x\n", name, e.Groups[g])
	}
	for d := range wholeSegment(t, everything, e).Documents() {
		fmt.Fprintf(&b, "document %x\n", columnar.AppendDocument(nil, &d))
	}
	if err := os.MkdirAll(filepath.Dir(vectorFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func takeApart(t failer, g columnar.ColumnGroup, data []byte) segment.Parts {
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
	for g, want := range [][]string{
		{
			// values a, b, c; the set of a and b
			"03" + "010101" + "616263" + "01" + "02" + "0000",
			"03" + "02" + // the second is deleted, and there are subs
				"0000" + "ffffffffffffffffff01" + strings.Repeat("000000", 7) + "010203" + "090000" +
				"0002" + "e807" + "0090f4" + "000101" + // revision: 500 and 0, 400, 500 more
				"0001" + "880e" + "000065" + // visible: 900, 900 and 101 more
				"0001" + "02" + "050000" + // codes 6 and 1
				"01" + "04" + "01" + // open is null in the third, true in the first
				"01" + "01" + "0000" + "de0f", // at is null in the first, 1007
		},
		{"0001" + "02" + "000004", "fe" + "78ff79fffe"}, // lengths 1 and 4 more
		{"0001" + "02" + "000002", "fe" + "6efffe"},
	} {
		p, err := segment.TakeApart(small, columnar.ColumnGroup(g), e.Groups[g])
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
	if want := "cseg\x01\x00"; !strings.HasPrefix(string(e.Groups[columnar.Core]), want) {
		t.Errorf("core starts with %q, want %q", e.Groups[columnar.Core][:6], want)
	}
}

func TestAlteredGroupsAreRefused(t *testing.T) {
	e := segment.Encode(everything, vectorDocuments())
	for g := range e.Groups {
		group := columnar.ColumnGroup(g)
		read := func(data []byte) error {
			if group == columnar.Core {
				_, err := segment.Decode(everything, data)
				return err
			}
			return decoded(t, everything, e).Decode(group, data)
		}
		data := e.Groups[g]
		if err := read(data); err != nil {
			t.Fatalf("%s as written: %v", group, err)
		}
		for n := range data {
			if err := read(data[:n]); !errors.Is(err, columnar.ErrFormat) {
				t.Errorf("%s: the first %d of %d bytes: %v, want ErrFormat", group, n, len(data), err)
			}
			altered := bytes.Clone(data)
			altered[n] ^= 0x10
			if err := read(altered); !errors.Is(err, columnar.ErrFormat) {
				t.Errorf("%s: byte %d altered: %v, want ErrFormat", group, n, err)
			}
		}
		for format, want := range map[byte]error{0: columnar.ErrVersion, 2: columnar.ErrNewer} {
			other := bytes.Clone(data)
			other[len("cseg")] = format
			if err := read(segment.Reseal(other)); !errors.Is(err, want) {
				t.Errorf("%s of format %d: %v, want %v", group, format, err, want)
			}
		}
		if err := read(segment.Reseal(append(bytes.Clone(data), 0))); !errors.Is(err, columnar.ErrFormat) {
			t.Errorf("%s with a byte more: %v, want ErrFormat", group, err)
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
			if _, err := segment.Decode(row.schema, e.Groups[columnar.Core]); !errors.Is(err, columnar.ErrVersion) {
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
		group := columnar.ColumnGroup(g)
		parts := takeApart(t, group, e.Groups[g])
		refused := func(what string, p segment.Parts) {
			t.Helper()
			data := segment.Assemble(everything, group, p)
			err := func() error {
				if group == columnar.Core {
					_, err := segment.Decode(everything, data)
					return err
				}
				return decoded(t, everything, e).Decode(group, data)
			}()
			if !errors.Is(err, columnar.ErrFormat) {
				t.Errorf("%s: %s: %v, want ErrFormat", group, what, err)
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
		if group == columnar.Core {
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
	core := takeApart(t, columnar.Core, e.Groups[columnar.Core])
	head := segment.Assemble(everything, columnar.Core, segment.Parts{ID: core.ID})
	head = head[:len(head)-4-2] // without counts
	for _, row := range []struct {
		name, rest string
	}{
		{"2^60 documents", "808080808080808010" + "00" + "0000"},
		{"4,194,305 documents", "81808002" + "00" + "0000"},
		{"dictionaries of 250 MB in 5 bytes", "0100" + "80e59a77" + "05" + "0000000000"},
		{"dictionaries of 2^63 bytes", "0100" + "80808080808080808001" + "05" + "0000000000"},
		{"more compressed bytes than there are", "0100" + "10" + "ffffffff0f"},
	} {
		t.Run(row.name, func(t *testing.T) {
			rest, err := hex.DecodeString(row.rest)
			if err != nil {
				t.Fatal(err)
			}
			data := seal(append(bytes.Clone(head), rest...))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = segment.Decode(everything, data)
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
		core, search, other := takeApart(f, 0, e.Groups[0]), takeApart(f, 1, e.Groups[1]), takeApart(f, 2, e.Groups[2])
		for len(core.Frames) < 2 {
			core.Frames, search.Frames, other.Frames = append(core.Frames, nil), append(search.Frames, nil), append(other.Frames, nil)
		}
		f.Add(uint16(core.Counts[0]), uint16(core.Counts[1]), core.Frames[0], core.Frames[1],
			search.Frames[0], search.Frames[1], other.Frames[0], other.Frames[1])
	}
	f.Fuzz(func(t *testing.T, rows, tombstones uint16, dictionaries, block, searchLengths, searchText, otherLengths, otherText []byte) {
		rows %= 64
		core := segment.Parts{Counts: [2]uint64{uint64(rows), uint64(tombstones)}, Frames: [][]byte{dictionaries, block}}
		search := segment.Parts{Frames: [][]byte{searchLengths, searchText}}
		other := segment.Parts{Frames: [][]byte{otherLengths, otherText}}
		if rows == 0 {
			core.Frames, search.Frames, other.Frames = core.Frames[:1], search.Frames[:1], other.Frames[:1]
		}
		var e segment.Encoded
		for g, p := range []segment.Parts{core, search, other} {
			e.Groups[g] = segment.Assemble(everything, columnar.ColumnGroup(g), p)
		}
		checkHostile(t, e)
	})
}

// The same of altered and exchanged groups, whose checksums are made right.
func FuzzDecodeSegmentBytes(f *testing.F) {
	for _, docs := range [][]columnar.Document{nil, vectorDocuments(), vectorDocuments()[:4]} {
		e := segment.Encode(everything, docs)
		other := segment.Encode(everything, vectorDocuments()[:3])
		f.Add(e.Groups[0], e.Groups[1], e.Groups[2])
		f.Add(e.Groups[0], other.Groups[1], e.Groups[2])
		f.Add(e.Groups[0], e.Groups[2], e.Groups[1])
		f.Add(e.Groups[0][:len(e.Groups[0])/2], e.Groups[1], e.Groups[2])
	}
	f.Fuzz(func(t *testing.T, core, search, other []byte) {
		e := segment.Encoded{Groups: [columnar.NumColumnGroups][]byte{core, search, other}}
		for g, data := range e.Groups {
			if len(data) >= 4 {
				e.Groups[g] = segment.Reseal(data)
			}
		}
		checkHostile(t, e)
	})
}

func checkHostile(t *testing.T, e segment.Encoded) {
	g, err := segment.Decode(everything, e.Groups[columnar.Core])
	if err != nil {
		return
	}
	for _, group := range everything.TextGroups() {
		if err := g.Decode(group, e.Groups[group]); err != nil {
			return
		}
	}
	docs := slices.Collect(g.Documents())
	for i, data := range bytesOf(docs) {
		if _, _, err := columnar.DecodeDocument(everything, data); err != nil {
			t.Fatalf("document %d of an accepted segment: %v", i, err)
		}
	}
	again := segment.Encode(everything, docs)
	for group, data := range again.Groups {
		got, want := takeApart(t, columnar.ColumnGroup(group), data), takeApart(t, columnar.ColumnGroup(group), e.Groups[group])
		if !bytes.Equal(got.Frames[0], want.Frames[0]) && group == int(columnar.Core) {
			t.Fatalf("dictionaries written again as %x, were %x", got.Frames[0], want.Frames[0])
		}
		for n := range got.Frames[1:] {
			// Numbers may refer to others, but never take more.
			if group != int(columnar.Core) && !bytes.Equal(got.Frames[1+n], want.Frames[1+n]) {
				t.Fatalf("text of block %d written again as %x, was %x", n, got.Frames[1+n], want.Frames[1+n])
			}
		}
	}
	if diff := gocmp.Diff(bytesOf(docs), bytesOf(slices.Collect(wholeSegment(t, everything, again).Documents()))); diff != "" {
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
