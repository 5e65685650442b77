package commerce

import (
	"bytes"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"pgregory.net/rapid"
)

// overdueAt is the rule for a decoded invoice.
func overdueAt(v *Invoice, now value.Time) bool {
	return v.Type == invoiceRegular && (v.Status == invoiceIssued || v.Status == invoicePartiallyPaid) &&
		v.DueAt != nil && *v.DueAt < now && v.AmountDue > 0
}

func TestTheShapeOfAnInvoiceDerivesIsOverdue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored, err := Apply(nil, put(KindInvoice, string(drawMessage(t, KindInvoice))), testNow)
		if err != nil {
			t.Fatal(err)
		}
		r, err := stored.Record()
		if err != nil {
			t.Fatal(err)
		}
		v := r.(*Invoice)
		now := value.Time(rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "now"))
		if v.DueAt != nil && rapid.Bool().Draw(t, "at the edge") {
			now = *v.DueAt + value.Time(rapid.Int64Range(-1, 1).Draw(t, "by"))
		}
		v.IsOverdue = overdueAt(v, now)
		want, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendShape([]byte("x"), KindInvoice, stored.Doc, now); !bytes.Equal(got[1:], want) {
			t.Fatalf("at %s\n got %s\nwant %s", now, got[1:], want)
		}
	})
}

func TestAnInvoiceIsOverdueByEveryPartOfTheRule(t *testing.T) {
	const head = `{"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","currency":"EUR","invoiceNumber":"1",`
	for _, tt := range []struct {
		record string
		want   bool
	}{
		{head + `"status":"ISSUED","total":1,"dueAt":"2026-11-20"}`, true},
		{head + `"status":"PARTIALLY_PAID","total":2,"amountPaid":1,"dueAt":"2026-11-20"}`, true},
		{head + `"status":"ISSUED","total":1,"dueAt":"2026-11-21T06:35:41.242Z"}`, false}, // due now is not past
		{head + `"status":"ISSUED","total":1,"dueAt":"2026-11-21T06:35:41.241Z"}`, true},
		{head + `"status":"ISSUED","total":1}`, false},
		{head + `"status":"ISSUED","total":0,"dueAt":"2026-11-20"}`, false},
		{head + `"status":"ISSUED","total":1,"amountDue":0.0001,"dueAt":"2026-11-20"}`, true},
		{head + `"status":"ISSUED","total":1,"amountDue":-1,"dueAt":"2026-11-20"}`, false},
		{head + `"status":"ISSUED","type":"CREDIT_NOTE","total":1,"dueAt":"2026-11-20"}`, false},
		{head + `"status":"PAID","total":1,"dueAt":"2026-11-20"}`, false},
		{head + `"status":"DRAFT","total":1,"dueAt":"2026-11-20"}`, false},
		{head + `"status":"VOID","total":1,"dueAt":"2026-11-20"}`, false},
		{head + `"status":"UNCOLLECTIBLE","total":1,"dueAt":"2026-11-20"}`, false},
	} {
		t.Run(tt.record, func(t *testing.T) {
			s := store(t, nil, put(KindInvoice, tt.record), testNow)
			if got := bytes.Contains(AppendShape(nil, KindInvoice, s.Doc, testNow), []byte(`"isOverdue":true`)); got != tt.want {
				t.Errorf("overdue %v, want %v", got, tt.want)
			}
			if bytes.Contains(s.Doc, []byte(`"isOverdue":true`)) {
				t.Errorf("stored as overdue: %s", s.Doc)
			}
		})
	}
}

func TestTheShapeOfAnotherKindIsItsDocument(t *testing.T) {
	doc := []byte(`{"isOverdue":false,"status":"ISSUED","type":"INVOICE","dueAt":"1999-01-01T00:00:00.000Z","amountDue":1,"x":1}`)
	if got := AppendShape(nil, KindOrder, doc, testNow); !bytes.Equal(got, doc) {
		t.Errorf("got %s", got)
	}
}
