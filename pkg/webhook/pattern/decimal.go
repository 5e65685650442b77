package pattern

import (
	"bytes"
	"cmp"
	"strings"
)

// maxExponent bounds the exponents of a document's numbers: past it every
// number but zero lies beyond, or below, all those that a pattern can have.
const maxExponent = 1 << 40

// decimal is an exact number: 0.digits times ten to the power of point, with
// neither the first nor the last of the digits a zero. Zero has no digits.
type decimal struct {
	negative bool
	digits   []byte
	point    int64
}

// parseDecimal reads a JSON number, whose digits it appends to the buffer.
func parseDecimal(buffer []byte, text string) decimal {
	d := decimal{digits: buffer}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		d.point = parseExponent(text[at+1:])
		text = text[:at]
	}
	text, d.negative = strings.CutPrefix(text, "-")
	fraction := false
	for _, c := range []byte(text) {
		leading := c == '0' && len(d.digits) == 0
		switch {
		case c == '.':
			fraction = true
			continue
		case !leading:
			d.digits = append(d.digits, c)
		}
		switch {
		case leading && fraction:
			d.point--
		case !leading && !fraction:
			d.point++
		}
	}
	d.digits = bytes.TrimRight(d.digits, "0")
	if len(d.digits) == 0 {
		return decimal{}
	}
	return d
}

func parseExponent(text string) (exponent int64) {
	digits, negative := strings.CutPrefix(text, "-")
	for _, c := range []byte(strings.TrimPrefix(digits, "+")) {
		exponent = min(exponent*10+int64(c-'0'), maxExponent)
	}
	if negative {
		return -exponent
	}
	return exponent
}

// compare is -1, 0 or 1 as d is less than, equal to or greater than o.
func (d decimal) compare(o decimal) int {
	if d.sign() != o.sign() {
		return cmp.Compare(d.sign(), o.sign())
	}
	return d.sign() * cmp.Or(cmp.Compare(d.point, o.point), bytes.Compare(d.digits, o.digits))
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}
