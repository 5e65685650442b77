package fold_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fold"
)

func TestStringFoldsCaseMarksAndCompatibilityForms(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"", ""},
		{"plain text 42", "plain text 42"},
		{"Mixed CASE", "mixed case"},
		{"Crème Brûlée", "creme brulee"},
		{"Cre\u0301me", "creme"},
		{"Straße", "strasse"},
		{"STRASSE", "strasse"},
		{"ẞ", "ss"},
		{"Ærø", "aero"},
		{"ǼǾ", "aeo"},
		{"Œuvre", "oeuvre"},
		{"Łódź Đorđe", "lodz dorde"},
		{"İstanbul ISPARTA Iğdır", "istanbul isparta igdir"},
		{"ﬁne Ⅷ №5 ½", "fine viii no5 1⁄2"},
		{"ＡＢＣ１２", "abc12"},
		{"ΣΊΣΥΦΟΣ", "σισυφοσ"},
		{"σίσυφος", "σισυφοσ"},
		{"ᾳ", "α"},
		{"ŉ", "ʼn"},
		{"ꭰᎠ ᏸᏰ", "ᎠᎠ ᏰᏰ"},
		{"Å Ω K", "a ω k"},
		{"ЁЖ Й", "еж и"},
		{"हिन्दी", "हनद"},
		{"e\u20dd", "e"},
		{"\u0301", ""},
		{"한", "\u1112\u1161\u11ab"},
		{"カ\u3099ガ", "カカ"},
		{"a\xffb", "a\ufffdb"},
		{"É\xc3", "e\ufffd"},
	} {
		t.Run(row.in, func(t *testing.T) {
			if got := fold.String(row.in); got != row.want {
				t.Errorf("String(%q) = %q, want %q", row.in, got, row.want)
			}
		})
	}
}

// Every rune there is: folding what is folded changes nothing, no mark stays, and
// a rune folds the same among others as alone.
func TestStringIsIdempotentAndContextFreeForEveryRune(t *testing.T) {
	var text, want strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		once := fold.String(s)
		if once != s {
			if twice := fold.String(once); twice != once {
				t.Errorf("%U folds to %q and then to %q", r, once, twice)
			}
		}
		for _, f := range once {
			if unicode.Is(unicode.M, f) {
				t.Errorf("%U folds to %q, which keeps the mark %U", r, once, f)
			}
		}
		text.WriteString(s)
		want.WriteString(once)
		if r%256 != 255 {
			continue
		}
		if got := fold.String(text.String()); got != want.String() {
			t.Errorf("the runes up to %U fold together to %q, want %q", r, got, want.String())
		}
		text.Reset()
		want.Reset()
	}
}

func TestTokensSplitFoldAndDropRepetitions(t *testing.T) {
	for _, row := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" \t\u00a0\u2003\n ", nil},
		{"Red  SHIRT", []string{"red", "shirt"}},
		{"rouge Rouge ROUGE", []string{"rouge"}},
		{"\u0301 a\u0301", []string{"a"}},
		{"´", nil},
		{"a´b", []string{"a b"}},
		{"Größe\u3000XL", []string{"grosse", "xl"}},
	} {
		t.Run(row.in, func(t *testing.T) {
			if got := fold.Tokens(row.in); !slices.Equal(got, row.want) {
				t.Errorf("Tokens(%q) = %q, want %q", row.in, got, row.want)
			}
		})
	}
}

func TestStringDoesNotAllocateForFoldedText(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { fold.String("already folded, 4 kg") }); n != 0 {
		t.Errorf("String of folded text allocates %v times, want 0", n)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "Abc", "Straße", "İı", "ﬃ", "\xff\xfe", "a\u0301\u0327", "ǅ", "\u1e9b\u0323", "한국어"} {
		f.Add(s, "É")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		fa := fold.String(a)
		if !utf8.ValidString(fa) {
			t.Fatalf("String(%q) = %q is not valid UTF-8", a, fa)
		}
		if again := fold.String(fa); again != fa {
			t.Fatalf("String(%q) = %q, again %q", a, fa, again)
		}
		a, b = strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, "")
		if got, want := fold.String(a+b), fold.String(a)+fold.String(b); got != want {
			t.Fatalf("String(%q) = %q, the parts give %q", a+b, got, want)
		}
	})
}

func BenchmarkString(b *testing.B) {
	for _, row := range []struct{ name, in string }{
		{"Folded", "organic cotton shirt 0412"},
		{"ASCII", "Organic Cotton Shirt 0412"},
		{"Latin", "Crème brûlée à l’ancienne"},
		{"Cyrillic", "Хлопковая рубашка 0412"},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fold.String(row.in)
			}
		})
	}
}
