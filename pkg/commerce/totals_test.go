package commerce

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"pgregory.net/rapid"
)

// rat is an amount as an exact fraction.
func rat(a value.Amount) *big.Rat { return big.NewRat(int64(a), value.AmountScale) }

// halfUp rounds to four decimals, halves away from zero.
func halfUp(r *big.Rat) value.Amount {
	scaled := new(big.Rat).Mul(r, big.NewRat(value.AmountScale, 1))
	half := big.NewRat(int64(scaled.Sign()), 2)
	scaled.Add(scaled, half)
	return value.Amount(new(big.Int).Quo(scaled.Num(), scaled.Denom()).Int64())
}

// drawn is an amount of a line, absent half the time.
func drawn(t *rapid.T, name string, least, most int64) *value.Amount {
	if !rapid.Bool().Draw(t, name+"?") {
		return nil
	}
	a := value.Amount(rapid.Int64Range(least, most).Draw(t, name))
	return &a
}

// wantedLine computes a line in fractions.
func wantedLine(quantity, price value.Amount, discount, rate, tax, subtotal, total *value.Amount, inclusive bool) sums {
	want := sums{discount: value.Or(discount, 0)}
	want.subtotal = value.Or(subtotal, halfUp(new(big.Rat).Mul(rat(quantity), rat(price))))
	base := new(big.Rat).Sub(rat(want.subtotal), rat(want.discount))
	percent := rat(value.Or(rate, 0))
	divisor := big.NewRat(100, 1)
	if inclusive {
		divisor.Add(divisor, percent)
	}
	share := new(big.Rat).Mul(base, percent)
	want.tax = value.Or(tax, halfUp(share.Quo(share, divisor)))
	if !inclusive {
		base.Add(base, rat(want.tax))
	}
	want.total = value.Or(total, halfUp(base))
	return want
}

func member4(b *strings.Builder, name string, a *value.Amount) {
	if a != nil {
		fmt.Fprintf(b, `,"%s":%s`, name, a)
	}
}

func TestDerivedTotalsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inclusive := rapid.Bool().Draw(t, "inclusive")
		var items strings.Builder
		var want sums
		var wants []sums
		for i := range rapid.IntRange(0, 5).Draw(t, "items") {
			quantity := value.Amount(rapid.Int64Range(0, 1_000_0000).Draw(t, "quantity"))
			price := value.Amount(rapid.Int64Range(0, 10_000_0000).Draw(t, "unitPrice"))
			discount, rate := drawn(t, "discount", 0, 100_0000), drawn(t, "rate", 0, 1_000_0000)
			tax, subtotal, total := drawn(t, "tax", 0, 9_0000), drawn(t, "subtotal", 0, 999_0000), drawn(t, "total", 0, 999_0000)
			if i > 0 {
				items.WriteByte(',')
			}
			fmt.Fprintf(&items, `{"name":"a","quantity":%s,"unitPrice":%s`, quantity, price)
			member4(&items, "discountAmount", discount)
			member4(&items, "taxRate", rate)
			member4(&items, "taxAmount", tax)
			member4(&items, "subtotal", subtotal)
			member4(&items, "total", total)
			items.WriteByte('}')
			line := wantedLine(quantity, price, discount, rate, tax, subtotal, total, inclusive)
			wants = append(wants, line)
			want.subtotal += line.subtotal
			want.discount += line.discount
			want.tax += line.tax
			want.total += line.total
		}
		shipping, paidTotal := drawn(t, "shippingTotal", 0, 50_0000), drawn(t, "paidTotal", 0, 500_0000)
		var more strings.Builder
		member4(&more, "shippingTotal", shipping)
		member4(&more, "paidTotal", paidTotal)
		record := fmt.Sprintf(`{"id":"%s","orderNumber":"1","currency":"EUR","pricesIncludeTax":%v,"items":[%s]%s}`,
			testID, inclusive, items.String(), more.String())
		next, err := Apply(nil, put(KindOrder, record), testNow)
		if err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		r, err := next.Record()
		if err != nil {
			t.Fatal(err)
		}
		o := r.(*Order)
		for i, item := range o.Items {
			got := sums{subtotal: item.Subtotal, discount: value.Or(item.DiscountAmount, 0), tax: item.TaxAmount, total: item.Total}
			if got != wants[i] {
				t.Fatalf("%s\nitem %d: got %+v, want %+v", record, i, got, wants[i])
			}
		}
		want.total += value.Or(shipping, 0)
		got := sums{subtotal: o.Subtotal, discount: o.DiscountTotal, tax: o.TaxTotal, total: o.Total}
		if got != want {
			t.Fatalf("%s\ngot %+v, want %+v", record, got, want)
		}
		if due := max(0, want.total-value.Or(paidTotal, 0)); o.BalanceDue != due {
			t.Fatalf("%s\nbalanceDue %s, want %s", record, o.BalanceDue, due)
		}
	})
}

func TestTotalsByExample(t *testing.T) {
	const head = `"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","currency":"EUR"`
	for _, tt := range []struct {
		name   string
		kind   Kind
		record string
		want   string // a part of the stored JSON
	}{
		{
			"tax on top", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":3,"unitPrice":9.99,"discountAmount":1.5,"taxRate":20}],"shippingTotal":4.9`,
			`"subtotal":29.97,"discountTotal":1.5,"shippingTotal":4.9,"taxTotal":5.694,"total":39.064,"paidTotal":0,"refundedTotal":0,"balanceDue":39.064`,
		},
		{
			"tax included", KindOrder,
			`"orderNumber":"1","pricesIncludeTax":true,"items":[{"name":"a","quantity":1,"unitPrice":119,"taxRate":19}]`,
			`"subtotal":119,"discountTotal":0,"shippingTotal":0,"taxTotal":19,"total":119,`,
		},
		{
			"half a ten-thousandth goes up", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":0.5,"unitPrice":0.0001}]`,
			`"subtotal":0.0001,`,
		},
		{
			"and away from zero below it", KindInvoice,
			`"type":"CREDIT_NOTE","lines":[{"description":"a","quantity":0.5,"unitPrice":-0.0001}]`,
			`"subtotal":-0.0001,`,
		},
		{
			"what is given is kept", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":1,"unitPrice":10,"subtotal":9,"taxAmount":1,"total":7}],"subtotal":1,` +
				`"discountTotal":2,"taxTotal":3,"total":4,"paidTotal":5,"refundedTotal":6,"balanceDue":7,"shippingTotal":8`,
			`"subtotal":1,"discountTotal":2,"shippingTotal":8,"taxTotal":3,"total":4,"paidTotal":5,"refundedTotal":6,"balanceDue":7`,
		},
		{
			"a given total of an item counts", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":1,"unitPrice":10,"total":9}]`,
			`"subtotal":10,"discountTotal":0,"shippingTotal":0,"taxTotal":0,"total":9,`,
		},
		{
			"a discount on the order counts", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":1,"unitPrice":10,"taxRate":10}],"discountTotal":2`,
			`"subtotal":10,"discountTotal":2,"shippingTotal":0,"taxTotal":1,"total":9,`,
		},
		{
			"totals without items add up", KindOrder,
			`"orderNumber":"1","subtotal":100,"discountTotal":10,"taxTotal":18,"shippingTotal":5,"paidTotal":13`,
			`"total":113,"paidTotal":13,"refundedTotal":0,"balanceDue":100`,
		},
		{
			"tax that prices include is not added", KindOrder,
			`"orderNumber":"1","pricesIncludeTax":true,"subtotal":100,"taxTotal":18`,
			`"taxTotal":18,"total":100,`,
		},
		{
			"payments count when their money came, refunds always", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":1,"unitPrice":10}],"payments":[{"amount":4,"paidAt":"2026-01-01"},{"amount":5}],` +
				`"refunds":[{"amount":1.5},{}]`,
			`"total":10,"paidTotal":4,"refundedTotal":1.5,"balanceDue":6`,
		},
		{
			"nothing is due of what is overpaid", KindOrder,
			`"orderNumber":"1","items":[{"name":"a","quantity":1,"unitPrice":10}],"paidTotal":11`,
			`"balanceDue":0`,
		},
		{
			"an invoice", KindInvoice,
			`"lines":[{"description":"a","quantity":2,"unitPrice":50,"taxRate":7.5}],"amountPaid":7.5`,
			`"subtotal":100,"discountTotal":0,"taxTotal":7.5,"total":107.5,"amountPaid":7.5,"amountDue":100`,
		},
		{
			"a credit note owes nothing", KindInvoice,
			`"type":"CREDIT_NOTE","lines":[{"description":"a","quantity":-2,"unitPrice":50}]`,
			`"total":-100,"amountPaid":0,"amountDue":0`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next, err := Apply(nil, put(tt.kind, `{`+head+`,`+tt.record+`}`), testNow)
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			if !strings.Contains(string(next.Doc), tt.want) {
				t.Errorf("{%s}\n got %s\nwant …%s…", tt.record, next.Doc, tt.want)
			}
		})
	}
}

func TestTheLargestSumsStayWithinTheirBound(t *testing.T) {
	item := `{"name":"a","quantity":1,"unitPrice":99999999,"subtotal":99999999999.9999,"total":-99999999999.9999,"taxAmount":99999999999.9999},`
	record := `{"id":"` + testID.String() + `","orderNumber":"1","currency":"EUR","items":[` +
		strings.TrimSuffix(strings.Repeat(item, maxNested), ",") + `]}`
	_, err := Apply(nil, put(KindOrder, record), testNow)
	if err == nil || !strings.Contains(err.Error(), "record.subtotal is derived and would be past") {
		t.Errorf("a thousand of the largest items: %.200v", err)
	}
}
