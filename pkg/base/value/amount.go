package value

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Amount is an exact decimal with four decimals: money, a quantity, a stock
// level or a percentage. The integer counts ten-thousandths.
type Amount int64

const (
	// AmountScale is the number of ten-thousandths in one.
	AmountScale = 10_000
	// MaxAmount is the largest magnitude: 99,999,999,999.9999.
	MaxAmount Amount = 999_999_999_999_999

	amountDecimals = 4
)

var (
	errAmount      = errors.New("must be a number")
	errAmountFine  = errors.New("must have at most 4 decimals")
	errAmountRange = errors.New("must lie between -99999999999.9999 and 99999999999.9999")
)

// ParseAmount accepts a JSON number (RFC 8259, section 6), exponent included.
// A fifth decimal is refused, never rounded; trailing zeros do not count as
// decimals.
func ParseAmount(s string) (Amount, error) {
	number, negative := strings.CutPrefix(s, "-")
	exponent := 0
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		var ok bool
		if exponent, ok = parseExponent(number[i+1:]); !ok {
			return 0, errAmount
		}
		number = number[:i]
	}
	whole, fraction, point := strings.Cut(number, ".")
	if !isDigits(whole) || len(whole) > 1 && whole[0] == '0' || point && !isDigits(fraction) {
		return 0, errAmount
	}
	// The number is digits times ten to the exponent.
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent += len(digits) - len(fraction)
	digits = strings.TrimRight(digits, "0")
	exponent -= len(digits)
	zeros := exponent + amountDecimals
	switch {
	case digits == "":
		return 0, nil
	case zeros < 0:
		return 0, errAmountFine
	case len(digits)+zeros > len("999999999999999"):
		return 0, errAmountRange
	}
	var a Amount
	for _, c := range []byte(digits) {
		a = a*10 + Amount(c-'0')
	}
	for range zeros {
		a *= 10
	}
	if negative {
		a = -a
	}
	return a, nil
}

// parseExponent caps the exponent at a million: past it every non-zero number
// is out of range or too fine, whatever its digits.
func parseExponent(s string) (exponent int, ok bool) {
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	for _, c := range []byte(digits) {
		exponent = min(exponent*10+int(c-'0'), 1_000_000)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, isDigits(digits)
}

func isDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// Add returns a + b; ok is false when the sum is past the bound.
func (a Amount) Add(b Amount) (sum Amount, ok bool) {
	sum = a + b
	return sum, sum.InRange()
}

// InRange reports whether |a| is at most [MaxAmount].
func (a Amount) InRange() bool { return a <= MaxAmount && a >= -MaxAmount }

// MulDiv returns a × b ÷ c rounded half away from zero to four decimals,
// computed in 128 bits; ok is false when the result is past the bound or c
// is zero. All three are plain ten-thousandths: to multiply two amounts
// divide by [AmountScale].
func (a Amount) MulDiv(b, c Amount) (result Amount, ok bool) {
	if c == 0 {
		return 0, false
	}
	negative := (a < 0) != (b < 0) != (c < 0)
	divisor := magnitude(c)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi >= divisor {
		return 0, false
	}
	quotient, remainder := bits.Div64(hi, lo, divisor)
	if remainder >= divisor-remainder {
		quotient++
	}
	if quotient > uint64(MaxAmount) {
		return 0, false
	}
	result = Amount(quotient) //nolint:gosec // bounded by MaxAmount above
	if negative {
		result = -result
	}
	return result, true
}

func magnitude(a Amount) uint64 {
	if a < 0 {
		return uint64(-a) //nolint:gosec // a is negative
	}
	return uint64(a)
}

// String writes the amount without an exponent and without trailing zeros.
func (a Amount) String() string { return string(a.appendNumber(nil)) }

func (a Amount) appendNumber(b []byte) []byte {
	if a < 0 {
		b = append(b, '-')
	}
	whole := magnitude(a)
	fraction := whole % AmountScale
	b = strconv.AppendUint(b, whole/AmountScale, 10)
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for unit := uint64(AmountScale / 10); fraction > 0; unit /= 10 {
		b = append(b, byte('0'+fraction/unit))
		fraction %= unit
	}
	return b
}

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return a.appendNumber(nil), nil }

// UnmarshalJSON accepts a JSON number with the rules of [ParseAmount].
func (a *Amount) UnmarshalJSON(b []byte) error {
	parsed, err := ParseAmount(string(b))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// MarshalJSONTo writes a JSON number.
func (a Amount) MarshalJSONTo(enc *jsontext.Encoder) error {
	var buf [24]byte
	return enc.WriteValue(a.appendNumber(buf[:0]))
}

// UnmarshalJSONFrom accepts a JSON number with the rules of [ParseAmount].
func (a *Amount) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return a.UnmarshalJSON(raw)
}
