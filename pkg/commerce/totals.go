package commerce

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// hundred is 100% in ten-thousandths.
const hundred value.Amount = 100 * value.AmountScale

// line is what an order's item and an invoice's line have in common.
type line struct {
	unit              *Unit
	discount, taxRate *value.Amount // nil is 0
	sent              lineAmounts   // nil is absent
	kept              lineAmounts   // where the amounts of the shape are
}

type lineAmounts struct{ quantity, unitPrice, subtotal, tax, total *value.Amount }

// checkLine refuses a line without what the others follow from. That of a credit
// note may have a negative quantity or price.
func (d *draft) checkLine(path string, l line, credit bool) {
	d.require(path+"quantity", l.sent.quantity != nil)
	d.require(path+"unitPrice", l.sent.unitPrice != nil)
	if !credit {
		d.notNegative(path+"quantity", l.sent.quantity)
		d.notNegative(path+"unitPrice", l.sent.unitPrice)
	}
	d.percent(path+"taxRate", l.taxRate)
	*l.unit = cmp.Or(*l.unit, UnitPiece)
}

// sums are the four amounts that lines and documents share.
type sums struct {
	subtotal, discount, tax, total value.Amount
}

// line fills in the amounts of a line, deriving those that are absent:
//
//	subtotal = quantity × unitPrice
//	tax      = (subtotal − discount) × rate ÷ 100, or ÷ (100 + rate) of prices that include it
//	total    = subtotal − discount (+ tax unless the prices include it)
//
// rounded half-up to four decimals.
func (d *draft) line(path string, l line, inclusive bool) sums {
	got := sums{discount: value.Or(l.discount, 0)}
	got.subtotal = d.product(path+"subtotal", l.sent.subtotal, *l.sent.quantity, *l.sent.unitPrice, value.AmountScale)
	taxable, taxRate, divisor := got.subtotal-got.discount, value.Or(l.taxRate, 0), hundred
	if inclusive {
		divisor += taxRate
	}
	got.tax = d.product(path+"taxAmount", l.sent.tax, taxable, taxRate, divisor)
	total := taxable
	if !inclusive {
		total += got.tax
	}
	got.total = d.bounded(path+"total", l.sent.total, total)
	*l.kept.quantity, *l.kept.unitPrice = *l.sent.quantity, *l.sent.unitPrice
	*l.kept.subtotal, *l.kept.tax, *l.kept.total = got.subtotal, got.tax, got.total
	return got
}

// documentSums is the arithmetic of an order or an invoice: the amounts that
// were sent (nil is absent), and the sums over its lines so far. At most 1,000
// lines keep the sums far from overflow.
type documentSums struct {
	subtotal, discount, tax, total *value.Amount
	shipping                       value.Amount
	inclusive                      bool
	lines                          sums
}

func (s *documentSums) add(line sums) {
	s.lines.subtotal += line.subtotal
	s.lines.discount += line.discount
	s.lines.tax += line.tax
	s.lines.total += line.total
}

// document derives the absent amounts of a document. subtotal, discount and
// tax are the sums over the lines. total is the sum over the lines plus
// shipping, corrected by the difference between a given subtotal, discount or
// tax and its sum: so an order with a discount of its own, or with totals but
// no items, adds up.
func (d *draft) document(s documentSums) sums {
	got := sums{
		subtotal: d.bounded("subtotal", s.subtotal, s.lines.subtotal),
		discount: d.bounded("discountTotal", s.discount, s.lines.discount),
		tax:      d.bounded("taxTotal", s.tax, s.lines.tax),
	}
	total := s.lines.total + s.shipping + (got.subtotal - s.lines.subtotal) - (got.discount - s.lines.discount)
	if !s.inclusive {
		total += got.tax - s.lines.tax
	}
	got.total = d.bounded("total", s.total, total)
	return got
}

// bounded returns the given amount, else the derived one, which must be within
// the bound of an amount.
func (d *draft) bounded(field string, given *value.Amount, derived value.Amount) value.Amount {
	if given != nil {
		return *given
	}
	if !derived.InRange() {
		d.pastBound(field)
	}
	return derived
}

// product is bounded of a × b ÷ c.
func (d *draft) product(field string, given *value.Amount, a, b, c value.Amount) value.Amount {
	if given != nil {
		return *given
	}
	derived, ok := a.MulDiv(b, c)
	if !ok {
		d.pastBound(field)
	}
	return derived
}

func (d *draft) pastBound(field string) {
	d.refuse(field, fault.DetailOutOfRange, "is derived and would be past %s; send it, or smaller amounts", value.MaxAmount)
}
