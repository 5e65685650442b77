package value

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func TestAmountsAreReadExactly(t *testing.T) {
	for s, want := range map[string]Amount{
		"0":                         0,
		"-0":                        0,
		"0.0":                       0,
		"0e999999999999":            0,
		"1":                         10_000,
		"-1":                        -10_000,
		"12.5":                      125_000,
		"12.50000000":               125_000,
		"0.0001":                    1,
		"0.1":                       1_000,
		"1e2":                       1_000_000,
		"1E+2":                      1_000_000,
		"125e-1":                    125_000,
		"1e-4":                      1,
		"10000e-8":                  1,
		"0.00001e1":                 1,
		"99999999999.9999":          MaxAmount,
		"-99999999999.9999":         -MaxAmount,
		"0.000999999999999999e14":   999_999_999_999_999,
		"999999999999999000000e-10": 999_999_999_999_999,
		"9.9990":                    99_990,
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseAmount(s); err != nil || got != want {
				t.Errorf("ParseAmount(%q) = %d, %v; want %d", s, got, err, want)
			}
		})
	}
}

func TestWhatIsNoAmountIsRefused(t *testing.T) {
	for s, want := range map[string]error{
		"": errAmount, "-": errAmount, "+1": errAmount, "01": errAmount, "-01": errAmount, ".5": errAmount, "1.": errAmount, "1.e2": errAmount,
		"1e": errAmount, "1e+": errAmount, "1e1.5": errAmount, "0x1": errAmount, "NaN": errAmount, "Infinity": errAmount, "1 ": errAmount,
		" 1": errAmount, "1,5": errAmount, "null": errAmount, `"1"`: errAmount, "１": errAmount, "1_000": errAmount,
		"0.00001": errAmountFine, "1.00001": errAmountFine, "1e-5": errAmountFine, "1e-999999999999": errAmountFine, "12345678901234567890.12345": errAmountFine,
		"100000000000": errAmountRange, "-100000000000": errAmountRange, "99999999999.99991": errAmountFine, "1e11": errAmountRange,
		"1e999999999999": errAmountRange, "12345678901234567890123": errAmountRange,
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseAmount(s); err != want {
				t.Errorf("ParseAmount(%q) = %d, %v; want %v", s, got, err, want)
			}
		})
	}
}

func drawAmount(t *rapid.T, name string) Amount {
	return Amount(rapid.Int64Range(-int64(MaxAmount), int64(MaxAmount)).Draw(t, name))
}

func rat(a Amount) *big.Rat { return big.NewRat(int64(a), AmountScale) }

func TestAmountsAreWrittenAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAmount(t, "amount")
		text := a.String()
		if strings.ContainsAny(text, "eE") || strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Fatalf("%d is written %s", a, text)
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok || exact.Cmp(rat(a)) != 0 {
			t.Fatalf("%d is written %s", a, text)
		}
		var back Amount
		if err := json.Unmarshal([]byte(text), &back); err != nil || back != a {
			t.Fatalf("%s reads back as %d, %v", text, back, err)
		}
		if b, err := json.Marshal(a); err != nil || string(b) != text {
			t.Fatalf("%d as JSON is %s, %v; want %s", a, b, err, text)
		}
	})
}

func TestMulDivRoundsHalvesAwayFromZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawAmount(t, "a"), drawAmount(t, "b"), drawAmount(t, "c")
		if rapid.Bool().Draw(t, "small") {
			a, b, c = a%1000, b%1000, c%10
		}
		got, ok := a.MulDiv(b, c)
		if c == 0 {
			if ok {
				t.Fatalf("%d × %d ÷ 0 = %d", a, b, got)
			}
			return
		}
		twice := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(2*int64(b)))
		divisor := big.NewInt(int64(c))
		sign := twice.Sign() * divisor.Sign()
		want := new(big.Int).Add(twice.Abs(twice), divisor.Abs(divisor)) // floor((2ab + c) / 2c)
		want.Quo(want, divisor.Mul(divisor, big.NewInt(2)))
		if sign < 0 {
			want.Neg(want)
		}
		if inRange := want.CmpAbs(big.NewInt(int64(MaxAmount))) <= 0; inRange != ok || ok && want.Int64() != int64(got) {
			t.Fatalf("%d × %d ÷ %d = %d, %v; want %s", a, b, c, got, ok, want)
		}
	})
}

func TestAddTellsWhenTheSumIsPastTheBound(t *testing.T) {
	for _, tt := range []struct {
		a, b, want Amount
		ok         bool
	}{
		{1, 2, 3, true},
		{MaxAmount, 0, MaxAmount, true},
		{MaxAmount, 1, MaxAmount + 1, false},
		{-MaxAmount, -1, -MaxAmount - 1, false},
		{MaxAmount, -MaxAmount, 0, true},
	} {
		t.Run(fmt.Sprintf("%v_%v", tt.a, tt.b), func(t *testing.T) {
			if got, ok := tt.a.Add(tt.b); got != tt.want || ok != tt.ok {
				t.Errorf("%d + %d = %d, %v; want %d, %v", tt.a, tt.b, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"0", "-12.5", "1e2", "99999999999.9999", "0.00001", "1E-4", "--1", "1e999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAmount(s)
		if err != nil {
			return
		}
		if !a.InRange() {
			t.Fatalf("%q = %d, past the bound", s, a)
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Fatalf("%q = %s, which reads as %d, %v", s, a, again, err)
		}
		if len(s) > 30 {
			return // an exponent that big.Rat would write out
		}
		if _, exponent, ok := strings.Cut(strings.ToLower(s), "e"); ok && len(exponent) > 3 {
			return
		}
		if exact, ok := new(big.Rat).SetString(s); !ok || exact.Cmp(rat(a)) != 0 {
			t.Fatalf("%q = %s, want %v", s, a, exact)
		}
	})
}

func BenchmarkParseAmount(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseAmount("12345.6789"); err != nil {
			b.Fatal(err)
		}
	}
}
