package commerce

import (
	"bytes"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// AppendShape appends the GET shape of a stored document as it is at a time.
// It differs from the document only in an invoice's isOverdue.
func AppendShape(dst []byte, kind Kind, doc []byte, now value.Time) []byte {
	if kind != KindInvoice || !overdue(doc, now) {
		return append(dst, doc...)
	}
	flag := bytes.Index(doc, storedFlag)
	if flag < 0 {
		return append(dst, doc...)
	}
	dst = append(dst, doc[:flag]...)
	dst = append(dst, `,"isOverdue":true`...)
	return append(dst, doc[flag+len(storedFlag):]...)
}

var storedFlag = []byte(`,"isOverdue":false`)

// overdue is [Invoice.OverdueAt] of a stored document, without decoding it.
// Every field that it looks at is the first member of its name in the text:
// what precedes them are texts, in which a quote is always escaped, and
// objects of fixed names, while the free-form metadata follows.
func overdue(doc []byte, now value.Time) bool {
	status := InvoiceStatus(text(after(doc, `,"status":`)))
	if status != InvoiceIssued && status != InvoicePartiallyPaid ||
		InvoiceType(text(after(doc, `,"type":`))) != InvoiceRegular {
		return false
	}
	due, err := value.ParseTime(string(text(after(doc, `,"dueAt":`))))
	if err != nil || due >= now {
		return false
	}
	amount := after(doc, `,"amountDue":`)
	if end := bytes.IndexByte(amount, ','); end >= 0 {
		amount = amount[:end]
	}
	owed, err := value.ParseAmount(string(amount))
	return err == nil && owed > 0
}

// after is the text that follows the first occurrence of a member's name.
func after(doc []byte, name string) []byte {
	i := bytes.Index(doc, []byte(name))
	if i < 0 {
		return nil
	}
	return doc[i+len(name):]
}

// text is the JSON text without escapes that b begins with, else nothing.
func text(b []byte) []byte {
	if len(b) == 0 || b[0] != '"' {
		return nil
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 {
		return nil
	}
	return b[1 : 1+end]
}

// shape is the GET shape of a stored record as a value of its own.
func (s *Stored) shape(now value.Time) jsontext.Value {
	return AppendShape(make([]byte, 0, len(s.Doc)), s.Kind, s.Doc, now)
}
