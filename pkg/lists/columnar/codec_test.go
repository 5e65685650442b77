package columnar_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func TestDocumentHasTheSpecifiedForm(t *testing.T) {
	id := [16]byte{0: 0xaa, 15: 0xbb}
	doc := everything.Build(id, 7).
		Keyword(state, "b", "a", "b").Bool(active, true).Number(price, -2).Text(name, "Éa").Document(300, 1)
	for _, row := range []struct {
		name string
		doc  columnar.Document
		want string
	}{
		{"values", doc, "27" + "00" + "07" + "aa0000000000000000000000000000bb" + "d804" + "02" +
			"010304" + "0161" + "0162" + "0301" + "040203" + "070303" + "026561"},
		{"tombstone", everything.Tombstone(id, 0, 300, 1), "15" + "01" + "00" + "aa0000000000000000000000000000bb" + "d804" + "02"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := columnar.AppendDocument([]byte("before"), &row.doc)
			want, err := hex.DecodeString(row.want)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("AppendDocument appends\n%x, want\n%x", got[len("before"):], want)
			}
		})
	}
}

func TestDocumentsSurviveCodingOneBehindTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := documents(rapid.SliceOfN(genRecord(), 0, 5).Draw(t, "records"))
		var data []byte
		for i := range docs {
			data = columnar.AppendDocument(data, &docs[i])
		}
		for i := range docs {
			var got columnar.Document
			var err error
			if got, data, err = columnar.DecodeDocument(everything, data); err != nil {
				t.Fatalf("document %d: %v", i, err)
			}
			if diff := gocmp.Diff(columnar.AppendDocument(nil, &docs[i]), columnar.AppendDocument(nil, &got)); diff != "" {
				t.Fatalf("document %d (-written +read):\n%s", i, diff)
			}
			if got.ID != docs[i].ID || got.Sub != docs[i].Sub || got.Revision != docs[i].Revision ||
				got.Visible != docs[i].Visible || got.Deleted != docs[i].Deleted {
				t.Fatalf("document %d: read %+v, want %+v", i, got, docs[i])
			}
		}
		if len(data) != 0 {
			t.Fatalf("%d bytes are left", len(data))
		}
	})
}

func TestDecodeRefusesEveryOtherForm(t *testing.T) {
	head := strings.Repeat("00", 1+1+16+1+1) // deleted, sub, id, revision, visible
	for _, row := range []struct {
		name, body string
		want       error
	}{
		{"neither deleted nor not", "02" + head[2:], columnar.ErrFormat},
		{"short id", "000000", columnar.ErrFormat},
		{"long number", head[:36] + "8000" + "00", columnar.ErrFormat},
		{"number of 11 bytes", head[:36] + strings.Repeat("ff", 10) + "01" + "00", columnar.ErrFormat},
		{"deleted with values", "01" + head[2:] + "0300", columnar.ErrFormat},
		{"column 0", head + "0000", columnar.ErrFormat},
		{"column 65", head + "4100", columnar.ErrFormat},
		{"columns falling", head + "040200" + "0300", columnar.ErrFormat},
		{"column twice", head + "0300" + "0301", columnar.ErrFormat},
		{"column without kind", head + "03", columnar.ErrFormat},
		{"unknown kind of an unknown column", head + "3f04", columnar.ErrFormat},
		{"number for a Bool", head + "030202", columnar.ErrVersion},
		{"true for a Number", head + "0401", columnar.ErrVersion},
		{"number for a Text", head + "070202", columnar.ErrVersion},
		{"string cut off", head + "0103020361", columnar.ErrFormat},
		{"strings cut off", head + "01030361", columnar.ErrFormat},
		{"no string", head + "010300", columnar.ErrFormat},
		{"text of other bytes", head + "07030201fe", columnar.ErrFormat},
	} {
		t.Run(row.name, func(t *testing.T) {
			body, err := hex.DecodeString(row.body)
			if err != nil {
				t.Fatalf("%v", err)
			}
			data := append([]byte{byte(len(body))}, body...)
			if _, _, err := columnar.DecodeDocument(everything, data); !errors.Is(err, row.want) {
				t.Errorf("DecodeDocument(%x) = %v, want %v", data, err, row.want)
			}
		})
	}
}

func TestDecodeRefusesWhatIsCutOff(t *testing.T) {
	doc := everything.Build([16]byte{1}, 0).Text(name, "linen shirt").Number(price, 1250).Document(9, 9)
	data := columnar.AppendDocument(nil, &doc)
	for n := range data {
		if _, _, err := columnar.DecodeDocument(everything, data[:n]); !errors.Is(err, columnar.ErrFormat) {
			t.Errorf("the first %d of %d bytes: %v, want ErrFormat", n, len(data), err)
		}
	}
}

func TestColumnsAddedLaterAreCarriedAndIgnored(t *testing.T) {
	columns := everything.Columns()
	later := columnar.MustSchema("everything", append(columns, columnar.Column{Name: "color", Type: columnar.Keyword})...)
	doc := later.Build([16]byte{1}, 0).Text(name, "shirt").Keyword(later.Col("color"), "red").Document(1, 1)
	data := columnar.AppendDocument(nil, &doc)
	got, _, err := columnar.DecodeDocument(everything, data)
	if err != nil {
		t.Fatal(err)
	}
	if again := columnar.AppendDocument(nil, &got); !bytes.Equal(again, data) {
		t.Errorf("written again: %x, want %x", again, data)
	}
	v := columnar.NewView(everything)
	v.Apply([]columnar.Document{got})
	if r := v.Query(columnar.Query{Search: []string{"shirt"}}); r.Total != 1 {
		t.Errorf("found %d documents by the columns known, want 1", r.Total)
	}
}

func TestBuilderCutsTextAtItsBound(t *testing.T) {
	long := strings.Repeat("é", columnar.MaxText) // folds to one byte each
	wide := strings.Repeat("日", columnar.MaxText)
	for _, row := range []struct {
		name   string
		values []string
		want   int // bytes of text kept
	}{
		{"fits", []string{long}, columnar.MaxText},
		{"one byte more", []string{long + "a"}, columnar.MaxText},
		{"next value", []string{long, "b"}, columnar.MaxText},
		{"between code points", []string{"a" + wide}, columnar.MaxText - columnar.MaxText%3 - 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			doc := everything.Build([16]byte{}, 0).Text(tags, row.values...).Document(1, 1)
			data := columnar.AppendDocument(nil, &doc)
			if _, _, err := columnar.DecodeDocument(everything, data); err != nil {
				t.Errorf("%v", err)
			}
			const around = 3 + 1 + 1 + 16 + 1 + 1 + 2 + 3 + 3
			if got := len(data) - around; got != row.want {
				t.Errorf("%d bytes of text kept, want %d", got, row.want)
			}
		})
	}
}

// What is decoded is written back byte for byte, and a view takes it.
func FuzzDecodeDocument(f *testing.F) {
	for _, doc := range []columnar.Document{
		everything.Tombstone([16]byte{1}, 0, 5, 6),
		everything.Tombstone([16]byte{1}, 3, -5, 1<<62),
		everything.Build([16]byte{2}, 0).Document(1, 2),
		everything.Build([16]byte{2}, 1).Keyword(state, "a").Keyword(sites, "A", "b").Bool(active, false).
			Number(price, 1<<40).Time(placed, -1).Text(tags, "one", "two", "").Text(name, "日本").Text(ref, "x").Document(1, 2),
	} {
		f.Add(columnar.AppendDocument(nil, &doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkDecoded(t, data)
		checkDecoded(t, append(binary.AppendUvarint(nil, uint64(len(data))), data...))
	})
}

func checkDecoded(t *testing.T, data []byte) {
	doc, rest, err := columnar.DecodeDocument(everything, data)
	if err != nil {
		return
	}
	if got, want := columnar.AppendDocument(nil, &doc), data[:len(data)-len(rest)]; !bytes.Equal(got, want) {
		t.Fatalf("decoded from %x, written back as %x", want, got)
	}
	v := columnar.NewView(everything)
	v.Apply([]columnar.Document{doc})
	v.Apply([]columnar.Document{doc})
	if got := v.Query(columnar.Query{OrderBy: name, Limit: 1}).Total == 0; got != doc.Deleted {
		t.Fatalf("deleted %v, but the view misses it: %v", doc.Deleted, got)
	}
}
