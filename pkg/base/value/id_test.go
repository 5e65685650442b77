package value

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestIdentifiersAreReadInAnyCase(t *testing.T) {
	const want = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"
	for _, s := range []string{want, strings.ToUpper(want), "0192F0c1-7a3e-7C54-9f3b-6c2a4d8e1f00"} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseID(s); err != nil || got.String() != want {
				t.Errorf("ParseID(%q) = %s, %v; want %s", s, got, err, want)
			}
		})
	}
	for _, s := range []string{
		"", "x", "0192f0c17a3e7c549f3b6c2a4d8e1f00", "{0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00}", "urn:uuid:0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00",
		"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f0", "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f0g", "0192f0c1_7a3e_7c54_9f3b_6c2a4d8e1f00",
		"0192f0c17-a3e-7c54-9f3b-6c2a4d8e1f00", " 192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00", "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00 ",
		"+192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00", "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1é0",
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseID(s); err == nil {
				t.Errorf("ParseID(%q) = %s", s, got)
			}
		})
	}
}

func TestIdentifiersOrderAsTheirTexts(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) ID { return ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if got, want := a.Compare(b), strings.Compare(a.String(), b.String()); got != want {
			t.Fatalf("%s against %s: %d, want %d", a, b, got, want)
		}
		text, err := a.AppendText([]byte("x"))
		if err != nil || string(text) != "x"+a.String() {
			t.Fatalf("AppendText = %s, %v", text, err)
		}
		body, err := json.Marshal(map[ID]ID{a: b})
		if err != nil {
			t.Fatal(err)
		}
		var back map[ID]ID
		if err := json.Unmarshal(body, &back); err != nil || back[a] != b {
			t.Fatalf("%s reads back as %v, %v", body, back, err)
		}
	})
}

func TestMadeIdentifiersHaveTheirVersion(t *testing.T) {
	namespace := MustID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	// RFC 9562, appendix A.4: version 5 of www.example.com under the DNS namespace
	if got, want := DeriveID(namespace, "www.example.com").String(), "2ed6657d-e927-568b-95e1-2665a8aea6a2"; got != want {
		t.Errorf("DeriveID = %s, want %s", got, want)
	}
	last := ID{}
	for range 1000 {
		id := NewID()
		if id[6]>>4 != 7 || id[8]>>6 != 2 || id.Compare(last) <= 0 {
			t.Fatalf("NewID = %s after %s", id, last)
		}
		last = id
	}
	if id := NewRandomID(); id[6]>>4 != 4 || id[8]>>6 != 2 || id.IsZero() {
		t.Errorf("NewRandomID = %s", id)
	}
	if !(ID{}).IsZero() {
		t.Error("the zero identifier is not zero")
	}
}

func TestMustIDPanicsOnABadUUID(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	MustID("x")
}

func FuzzParseID(f *testing.F) {
	f.Add("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")
	f.Add("0192F0C1-7A3E-7C54-9F3B-6C2A4D8E1F00")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseID(s); err == nil && id.String() != strings.ToLower(s) {
			t.Fatalf("%q reads as %s", s, id)
		}
		var id ID
		if err := id.UnmarshalText([]byte(s)); err == nil && !bytes.EqualFold([]byte(id.String()), []byte(s)) {
			t.Fatalf("%q reads as %s", s, id)
		}
	})
}

func BenchmarkIDText(b *testing.B) {
	b.ReportAllocs()
	id := NewID()
	var dst []byte
	for b.Loop() {
		dst, _ = id.AppendText(dst[:0])
		if err := id.UnmarshalText(dst); err != nil {
			b.Fatal(err)
		}
	}
}

func TestATimedIDSortsByItsTimeAndIsTheSameForTheSameHash(t *testing.T) {
	low, high := make([]byte, 32), bytes.Repeat([]byte{0xff}, 32)
	at := Time(1_795_242_941_242)
	for _, hash := range [][]byte{low, high} {
		id := TimedID(at, hash)
		if u := uuid.UUID(id); u.Version() != 7 || u.Variant() != uuid.RFC4122 || id != TimedID(at, hash) || id.Time() != at {
			t.Errorf("got %s, want the same UUID of version 7 each time", id)
		}
	}
	if TimedID(at, low) == TimedID(at, high) || TimedID(at, high).Compare(TimedID(at+1, low)) >= 0 {
		t.Error("the hash does not tell ids apart, or the time does not order them")
	}
	if TimedID(-1, low) != TimedID(0, low) {
		t.Error("a time before 1970 is not 0")
	}
}
