package commerce

import (
	"bytes"
	"testing"
)

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
