package commerce

import (
	"bytes"
	"cmp"
	"math"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/go-json-experiment/json/jsontext"
)

const filterOverdue = "isOverdue"

var invoiceKind = &definition{
	kind: KindInvoice, plural: "invoices", text: "Invoices and credit notes.", months: true,
	columns: []string{
		columnSite, "type", "status", "customerId", "orderId", "currency", "invoiceNumber", "customerName", "externalRef",
		"total", "amountDue", "issuedAt", "dueAt", "createdAt", "updatedAt", columnOwn,
	},
	personal: []string{"customerName", "customerEmail", "customerTaxNumber", "billingAddress", "pdfUrl", "notes", "metadata"},
	own:      "metadata",
	search:   []string{"invoiceNumber", "customerName"},
	orders: []lists.Order{
		lists.By("issuedAt"), lists.By("createdAt"), lists.By("updatedAt"), lists.By("dueAt"), lists.By("total"),
		lists.ByText("invoiceNumber"),
	},
	filters: []lists.Filter{
		siteFilter("The site of the invoice."),
		{Name: "type", Description: "Invoice or credit note."},
		{Name: "status", Description: "The state of the invoice."},
		{Name: "customerId", Description: "The customer."},
		{Name: "orderId", Description: "The order."},
		{Name: filterOverdue, Kind: lists.Bool, Description: "Whether the invoice is overdue now."},
		{Name: "currency", Description: "ISO 4217 codes."},
		{Name: "invoiceNumber", Description: "The invoice's number."},
		{Name: "externalRef", Description: "The sender's reference."},
		{Name: "total", Kind: lists.Amount, Column: "total", Description: "The total of the invoice, in its currency."},
		{Name: "issuedAt", Description: "When the invoice was issued."},
		{Name: "dueAt", Description: "When the invoice is due."},
	},
	where:       whereInvoice,
	appendShape: appendInvoice,
	events: append(lifecycle(KindInvoice, "An invoice",
		"A field of an invoice changed. Becoming overdue is not a change.", `{"notes": "Thank you."}`),
		recordEvent{
			name: "invoice.issued", text: "An invoice was issued: it is new or was a draft, and is ISSUED, PARTIALLY_PAID or PAID.",
			happened: func(was, is states) bool {
				return oneOf(was.status, "", "DRAFT") && oneOf(is.status, "ISSUED", "PARTIALLY_PAID", "PAID")
			},
			example: `{"status": "ISSUED", "invoiceNumber": "R-2026-0815", "issuedAt": "2026-11-21T08:35:00.000Z"}`,
		},
		recordEvent{
			name: "invoice.paid", text: "An invoice's status became PAID.",
			happened: becomes(status, "PAID"),
			example: `{"status": "PAID", "invoiceNumber": "R-2026-0815", "issuedAt": "2026-11-21T08:35:00.000Z",
				"amountPaid": 38.4, "paidAt": "2026-11-21T08:35:00.000Z"}`,
		},
		recordEvent{
			name: "invoice.voided", text: "An invoice's status became VOID.",
			happened: becomes(status, "VOID"),
			example:  `{"status": "VOID", "invoiceNumber": "R-2026-0815", "voidedAt": "2026-11-21T08:35:00.000Z"}`,
		}),
	sample: `{
		"id": "0192f0c2-9f91-7b66-9f91-a6e5f708192a", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"orderId": "0192f0c2-7e80-7a55-8e80-95d4e6f70819", "customerId": "0192f0c2-5d6f-7c44-9d7f-84c3d5e6f708",
		"customerName": "Ada Okafor", "customerEmail": "ada.okafor@example.com", "currency": "EUR",
		"lines": [{"productId": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "description": "Espresso cup", "sku": "CUP-080-W",
			"quantity": 4, "unitPrice": 8.9, "discountAmount": 3.6, "taxRate": 20}],
		"dueAt": "2026-12-05T00:00:00.000Z"}`,
}

// Invoice is the GET shape of an invoice or a credit note. A draft has no
// number: one that is sent is dropped. IsOverdue is always false in stored
// JSON; [AppendShape] derives it.
type Invoice struct {
	ID                value.ID       `json:"id"`
	OrganizationID    value.ID       `json:"organizationId"`
	SiteID            *value.ID      `json:"siteId" doc:"The site of the sale. null if it belongs to no site."`
	InvoiceNumber     *string        `json:"invoiceNumber" doc:"The invoice number. null for a draft."`
	ExternalRef       *string        `json:"externalRef" doc:"The id in another system. null if none."`
	Type              InvoiceType    `json:"type" doc:"Invoice or credit note; an open enumeration."`
	RelatedInvoiceID  *value.ID      `json:"relatedInvoiceId" doc:"The invoice that a credit note corrects. null if none."`
	Status            InvoiceStatus  `json:"status" doc:"The state of the invoice; an open enumeration."`
	IsOverdue         bool           `json:"isOverdue" doc:"Whether dueAt has passed and an amount is due, at the time of the answer. A change of this flag alone sends no event and leaves updatedAt as it is."`
	OrderID           *value.ID      `json:"orderId" doc:"The order that it bills. null if none."`
	CustomerID        *value.ID      `json:"customerId" doc:"The customer. null if unknown."`
	CustomerName      *string        `json:"customerName" doc:"The customer's name at the time of issue. null if unknown."`
	CustomerEmail     *string        `json:"customerEmail" doc:"The customer's e-mail address at the time of issue. null if unknown."`
	CustomerTaxNumber *string        `json:"customerTaxNumber" doc:"The customer's VAT or tax number at the time of issue. null if unknown."`
	BillingAddress    *Address       `json:"billingAddress" doc:"The billing address. null if unknown."`
	Currency          Currency       `json:"currency" doc:"The currency of all amounts, an ISO 4217 code."`
	Lines             []InvoiceLine  `json:"lines" doc:"The lines, at most 1,000."`
	TaxLines          []TaxLine      `json:"taxLines" doc:"The taxes of all lines, one entry for each tax."`
	Subtotal          value.Amount   `json:"subtotal" doc:"The sum of the lines' subtotals, before discounts."`
	DiscountTotal     value.Amount   `json:"discountTotal" doc:"The sum of all discounts."`
	TaxTotal          value.Amount   `json:"taxTotal" doc:"The sum of all taxes."`
	Total             value.Amount   `json:"total" doc:"The total billed, with taxes and discounts."`
	AmountPaid        value.Amount   `json:"amountPaid" doc:"The amount paid so far."`
	AmountDue         value.Amount   `json:"amountDue" doc:"The amount still due: total minus amountPaid, and at least 0 unless the sender gives a negative one."`
	IssuedAt          *value.Time    `json:"issuedAt" doc:"When it was issued. null for a draft."`
	SentAt            *value.Time    `json:"sentAt" doc:"When it was sent to the customer. null until then."`
	DueAt             *value.Time    `json:"dueAt" doc:"When payment is due. null if not set."`
	PaidAt            *value.Time    `json:"paidAt" doc:"When it was paid in full. null until then."`
	VoidedAt          *value.Time    `json:"voidedAt" doc:"When it was voided. null if it was not."`
	PDFURL            *string        `json:"pdfUrl" doc:"The URL of the PDF. null if none."`
	Notes             *string        `json:"notes" doc:"Text for the customer. null if none."`
	Metadata          jsontext.Value `json:"metadata" doc:"The organization's own fields, of any name and type, at most 32 KiB and 8 levels deep. Empty if none."`
	CreatedAt         value.Time     `json:"createdAt"`
	UpdatedAt         value.Time     `json:"updatedAt"`
}

// InvoiceLine is one position of an invoice. Its prices exclude tax.
type InvoiceLine struct {
	ID             value.ID      `json:"id"`
	ProductID      *value.ID     `json:"productId" doc:"The product. null if it is not in the catalogue."`
	Description    string        `json:"description" doc:"The text of the line."`
	SKU            *string       `json:"sku" doc:"The product's SKU at the time of billing. null if none."`
	Quantity       value.Amount  `json:"quantity" doc:"The billed quantity, in units. It may be negative in a credit note."`
	Unit           Unit          `json:"unit" doc:"The unit of the quantity; an open enumeration."`
	UnitPrice      value.Amount  `json:"unitPrice" doc:"The price of one unit, without tax. It may be negative in a credit note."`
	DiscountAmount *value.Amount `json:"discountAmount" doc:"The discount on the whole line. null if none."`
	TaxRate        *value.Amount `json:"taxRate" doc:"Percent: 20 is 20%, from 0 to 1,000. null if unknown."`
	TaxAmount      value.Amount  `json:"taxAmount" doc:"The tax on the line."`
	Subtotal       value.Amount  `json:"subtotal" doc:"quantity times unitPrice, before the discount."`
	Total          value.Amount  `json:"total" doc:"The total of the line: subtotal minus discount, plus tax."`
}

// InvoiceType distinguishes an invoice from a credit note.
type InvoiceType string

// Values lists what the type accepts.
func (InvoiceType) Values() []string { return []string{"INVOICE", "CREDIT_NOTE"} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *InvoiceType) UnmarshalText(b []byte) error { return parseEnum(t, b) }

// InvoiceStatus is the state of an invoice.
type InvoiceStatus string

// Values lists what the type accepts.
func (InvoiceStatus) Values() []string {
	return []string{"DRAFT", "ISSUED", "PARTIALLY_PAID", "PAID", "REFUNDED", "VOID", "UNCOLLECTIBLE"}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *InvoiceStatus) UnmarshalText(b []byte) error { return parseEnum(s, b) }

// invoiceInput is an invoice as a back office sends it.
type invoiceInput struct {
	Invoice

	IsOverdue     jsontext.Value     `json:"isOverdue"` // ignored
	Lines         []invoiceLineInput `json:"lines"`
	Subtotal      *value.Amount      `json:"subtotal"`
	DiscountTotal *value.Amount      `json:"discountTotal"`
	TaxTotal      *value.Amount      `json:"taxTotal"`
	Total         *value.Amount      `json:"total"`
	AmountPaid    *value.Amount      `json:"amountPaid"`
	AmountDue     *value.Amount      `json:"amountDue"`
	CreatedAt     *value.Time        `json:"createdAt"`
	UpdatedAt     jsontext.Value     `json:"updatedAt"` // ignored
}

// invoiceLineInput is a line as a back office sends it.
type invoiceLineInput struct {
	InvoiceLine

	Quantity  *value.Amount `json:"quantity"`
	UnitPrice *value.Amount `json:"unitPrice"`
	TaxAmount *value.Amount `json:"taxAmount"`
	Subtotal  *value.Amount `json:"subtotal"`
	Total     *value.Amount `json:"total"`
}

func (in *invoiceInput) complete(d *draft) any {
	v := &in.Invoice
	d.adopt(v.ID, &v.OrganizationID)
	d.require("currency", v.Currency != "")
	v.Type = cmp.Or(v.Type, "INVOICE")
	v.Status = cmp.Or(v.Status, "DRAFT")
	if v.Status == "DRAFT" {
		v.InvoiceNumber = nil
	} else {
		d.require("invoiceNumber", value.Or(v.InvoiceNumber, "") != "")
	}
	d.address("billingAddress", v.BillingAddress)
	d.taxLines(v.TaxLines)
	in.completeLines(d)
	v.Metadata = d.freeForm("metadata", v.Metadata)
	v.CreatedAt, v.UpdatedAt = d.times(in.CreatedAt)
	if d.ok() {
		in.deriveTotals(d)
	}
	return v
}

func (in *invoiceInput) completeLines(d *draft) {
	if !d.nested("lines", len(in.Lines), func(i int) *value.ID { return &in.Lines[i].ID }) {
		return
	}
	in.Invoice.Lines = make([]InvoiceLine, len(in.Lines))
	for i := range in.Lines {
		path := at("lines", i) + "."
		d.require(path+"description", in.Lines[i].Description != "")
		d.checkLine(path, in.Lines[i].line(), in.Type == "CREDIT_NOTE")
	}
}

func (in *invoiceLineInput) line() line {
	l := &in.InvoiceLine
	return line{
		unit: &l.Unit, discount: l.DiscountAmount, taxRate: l.TaxRate,
		sent: lineAmounts{in.Quantity, in.UnitPrice, in.Subtotal, in.TaxAmount, in.Total},
		kept: lineAmounts{&l.Quantity, &l.UnitPrice, &l.Subtotal, &l.TaxAmount, &l.Total},
	}
}

// deriveTotals fills what the sender left out of the invoice's arithmetic.
func (in *invoiceInput) deriveTotals(d *draft) {
	v := &in.Invoice
	sums := documentSums{subtotal: in.Subtotal, discount: in.DiscountTotal, tax: in.TaxTotal, total: in.Total}
	for i := range in.Lines {
		sums.add(d.line(at("lines", i)+".", in.Lines[i].line(), false))
		v.Lines[i] = in.Lines[i].InvoiceLine
	}
	got := d.document(sums)
	v.Subtotal, v.DiscountTotal, v.TaxTotal, v.Total = got.subtotal, got.discount, got.tax, got.total
	v.AmountPaid = value.Or(in.AmountPaid, 0)
	v.AmountDue = d.bounded("amountDue", in.AmountDue, max(0, v.Total-v.AmountPaid))
}

// whereInvoice filters by whether invoices are overdue, as overdue computes it
// of a document.
func whereInvoice(w *where) error {
	if !w.Has(filterOverdue) {
		return nil
	}
	col := w.schema.Col
	filter := columnar.All(
		columnar.In(col("type"), "INVOICE"),
		columnar.In(col("status"), "ISSUED", "PARTIALLY_PAID"),
		columnar.Within(col("dueAt"), math.MinInt64, int64(w.now)),
		columnar.Between(col("amountDue"), 1, math.MaxInt64),
	)
	if !w.Bool(filterOverdue, false) {
		filter = columnar.Not(filter)
	}
	w.add(filter)
	return nil
}

var storedFlag = []byte(`,"isOverdue":false`)

// appendInvoice appends the GET shape: the document with isOverdue at the time.
func appendInvoice(dst, doc []byte, now value.Time) []byte {
	flag := bytes.Index(doc, storedFlag)
	if flag < 0 || !overdue(doc, now) {
		return append(dst, doc...)
	}
	dst = append(dst, doc[:flag]...)
	dst = append(dst, `,"isOverdue":true`...)
	return append(dst, doc[flag+len(storedFlag):]...)
}

// overdue reports, without decoding the document, whether the invoice is
// overdue: an issued one, no credit note, with something due and its due time
// past. Every field that it looks at is the first member of its name in the
// text: before them are texts, in which a quote is always escaped, and objects
// of fixed names; the free-form metadata follows.
func overdue(doc []byte, now value.Time) bool {
	if !oneOf(string(text(after(doc, `,"status":`))), "ISSUED", "PARTIALLY_PAID") ||
		!oneOf(string(text(after(doc, `,"type":`))), "INVOICE") {
		return false
	}
	due, err := value.ParseTime(string(text(after(doc, `,"dueAt":`))))
	if err != nil || due >= now {
		return false
	}
	amount, _, _ := bytes.Cut(after(doc, `,"amountDue":`), []byte(","))
	owed, err := value.ParseAmount(string(amount))
	return err == nil && owed > 0
}

// after is the text that follows the first occurrence of a member's name.
func after(doc []byte, name string) []byte {
	_, rest, _ := bytes.Cut(doc, []byte(name))
	return rest
}
