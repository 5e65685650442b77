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

// AmountOf returns the whole number n as an amount; it panics past the bound
// and is meant for constants and tests.
func AmountOf(n int64) Amount {
	if n > int64(MaxAmount)/AmountScale || n < -int64(MaxAmount)/AmountScale {
		panic("value: whole number past the bound of an amount")
	}
	return Amount(n * AmountScale)
}

// ParseAmount accepts a JSON number, exponent included. A fifth decimal is
// refused, never rounded; trailing zeros do not count as decimals.
func ParseAmount(s string) (Amount, error) {
	if a, ok := plainAmount(s); ok {
		return a, nil
	}
	n, err := scanNumber(s)
	if err != nil {
		return 0, err
	}
	return n.amount()
}

// plainAmount reads the form that amounts are written in, which is nearly
// every number: without an exponent and within every bound.
func plainAmount(s string) (a Amount, ok bool) {
	const most = len("99999999999.9999")
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > most || digits[0] == '0' && len(digits) > 1 && digits[1] != '.' {
		return 0, false
	}
	point := len(digits)
	for i, c := range []byte(digits) {
		switch {
		case c >= '0' && c <= '9':
			a = a*10 + Amount(c-'0')
		case c == '.' && i > 0 && point == len(digits):
			point = i
		default:
			return 0, false
		}
	}
	decimals := max(0, len(digits)-point-1)
	if point > len("99999999999") || decimals > amountDecimals || point < len(digits) && decimals == 0 {
		return 0, false
	}
	for range amountDecimals - decimals {
		a *= 10
	}
	if len(digits) < len(s) {
		a = -a
	}
	return a, true
}

// number is a scanned JSON number: digits without leading or trailing zeros
// times ten to the exponent.
type number struct {
	negative bool
	digits   []byte
	exponent int
}

// scanNumber follows the grammar of RFC 8259, section 6.
func scanNumber(s string) (number, error) {
	var n number
	i := 0
	if i < len(s) && s[i] == '-' {
		n.negative = true
		i++
	}
	start := i
	i = n.scanDigits(s, i)
	if i == start || (s[start] == '0' && i > start+1) {
		return n, errAmount
	}
	if i < len(s) && s[i] == '.' {
		fraction := i + 1
		i = n.scanDigits(s, fraction)
		if i == fraction {
			return n, errAmount
		}
		n.exponent = -(i - fraction)
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		exponent, err := scanExponent(s[i+1:])
		if err != nil {
			return n, err
		}
		n.exponent += exponent
		i = len(s)
	}
	if i != len(s) {
		return n, errAmount
	}
	n.trim()
	return n, nil
}

func (n *number) scanDigits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		n.digits = append(n.digits, s[i])
		i++
	}
	return i
}

// scanExponent caps what it returns: past a million every non-zero number is
// out of range or too fine, whatever its digits.
func scanExponent(s string) (int, error) {
	negative := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if s == "" {
		return 0, errAmount
	}
	e := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, errAmount
		}
		e = min(e*10+int(c-'0'), 1_000_000)
	}
	if negative {
		e = -e
	}
	return e, nil
}

func (n *number) trim() {
	for len(n.digits) > 0 && n.digits[0] == '0' {
		n.digits = n.digits[1:]
	}
	for len(n.digits) > 0 && n.digits[len(n.digits)-1] == '0' {
		n.digits = n.digits[:len(n.digits)-1]
		n.exponent++
	}
}

func (n *number) amount() (Amount, error) {
	if len(n.digits) == 0 {
		return 0, nil
	}
	if n.exponent < -amountDecimals {
		return 0, errAmountFine
	}
	zeros := n.exponent + amountDecimals
	if len(n.digits)+zeros > len("999999999999999") {
		return 0, errAmountRange
	}
	var a Amount
	for _, c := range n.digits {
		a = a*10 + Amount(c-'0')
	}
	for range zeros {
		a *= 10
	}
	if n.negative {
		a = -a
	}
	return a, nil
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
