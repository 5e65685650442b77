package commerce

import (
	"strconv"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Invoice is the GET shape of an invoice or a credit note. A draft has no
// number: one that is sent is dropped. IsOverdue is always false in stored
// JSON; [Invoice.OverdueAt] derives it.
type Invoice struct {
	ID                value.ID       `json:"id"`
	OrganizationID    value.ID       `json:"organizationId"`
	SiteID            *value.ID      `json:"siteId"`
	InvoiceNumber     *string        `json:"invoiceNumber"`
	ExternalRef       *string        `json:"externalRef"`
	Type              InvoiceType    `json:"type"`
	RelatedInvoiceID  *value.ID      `json:"relatedInvoiceId"`
	Status            InvoiceStatus  `json:"status"`
	IsOverdue         bool           `json:"isOverdue"`
	OrderID           *value.ID      `json:"orderId"`
	CustomerID        *value.ID      `json:"customerId"`
	CustomerName      *string        `json:"customerName"`
	CustomerEmail     *string        `json:"customerEmail"`
	CustomerTaxNumber *string        `json:"customerTaxNumber"`
	BillingAddress    *Address       `json:"billingAddress"`
	Currency          Currency       `json:"currency"`
	Lines             []InvoiceLine  `json:"lines"`
	TaxLines          []TaxLine      `json:"taxLines"`
	Subtotal          value.Amount   `json:"subtotal"`
	DiscountTotal     value.Amount   `json:"discountTotal"`
	TaxTotal          value.Amount   `json:"taxTotal"`
	Total             value.Amount   `json:"total"`
	AmountPaid        value.Amount   `json:"amountPaid"`
	AmountDue         value.Amount   `json:"amountDue"`
	IssuedAt          *value.Time    `json:"issuedAt"`
	SentAt            *value.Time    `json:"sentAt"`
	DueAt             *value.Time    `json:"dueAt"`
	PaidAt            *value.Time    `json:"paidAt"`
	VoidedAt          *value.Time    `json:"voidedAt"`
	PDFURL            *string        `json:"pdfUrl"`
	Notes             *string        `json:"notes"`
	Metadata          jsontext.Value `json:"metadata"`
	CreatedAt         value.Time     `json:"createdAt"`
	UpdatedAt         value.Time     `json:"updatedAt"`
}

// InvoiceLine is one position of an invoice. Its prices exclude tax.
type InvoiceLine struct {
	ID             value.ID      `json:"id"`
	ProductID      *value.ID     `json:"productId"`
	Description    string        `json:"description"`
	SKU            *string       `json:"sku"`
	Quantity       value.Amount  `json:"quantity"`
	Unit           Unit          `json:"unit"`
	UnitPrice      value.Amount  `json:"unitPrice"`
	DiscountAmount *value.Amount `json:"discountAmount"`
	TaxRate        *value.Amount `json:"taxRate"`
	TaxAmount      value.Amount  `json:"taxAmount"`
	Subtotal       value.Amount  `json:"subtotal"`
	Total          value.Amount  `json:"total"`
}

// Kind implements [Record].
func (*Invoice) Kind() Kind { return KindInvoice }

// Head implements [Record].
func (v *Invoice) Head() Head {
	return Head{
		ID: v.ID, OrganizationID: v.OrganizationID, SiteID: v.SiteID,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
	}
}

// OverdueAt reports whether the invoice is overdue at the time: an issued
// invoice, no credit note, with something due and its due time past.
func (v *Invoice) OverdueAt(now value.Time) bool {
	return v.Type == InvoiceRegular &&
		(v.Status == InvoiceIssued || v.Status == InvoicePartiallyPaid) &&
		v.DueAt != nil && *v.DueAt < now && v.AmountDue > 0
}

// InvoiceType tells an invoice from a credit note.
type InvoiceType string

// The invoice types.
const (
	InvoiceRegular    InvoiceType = "INVOICE"
	InvoiceCreditNote InvoiceType = "CREDIT_NOTE"
)

// Values lists what the type accepts.
func (InvoiceType) Values() []string { return []string{"INVOICE", "CREDIT_NOTE"} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *InvoiceType) UnmarshalText(b []byte) error { return parseEnum(t, b) }

// InvoiceStatus is the state of an invoice.
type InvoiceStatus string

// The invoice states.
const (
	InvoiceDraft         InvoiceStatus = "DRAFT"
	InvoiceIssued        InvoiceStatus = "ISSUED"
	InvoicePartiallyPaid InvoiceStatus = "PARTIALLY_PAID"
	InvoicePaid          InvoiceStatus = "PAID"
	InvoiceRefunded      InvoiceStatus = "REFUNDED"
	InvoiceVoid          InvoiceStatus = "VOID"
	InvoiceUncollectible InvoiceStatus = "UNCOLLECTIBLE"
)

// Values lists what the type accepts.
func (InvoiceStatus) Values() []string {
	return enumNames([]InvoiceStatus{
		InvoiceDraft, InvoiceIssued, InvoicePartiallyPaid, InvoicePaid, InvoiceRefunded, InvoiceVoid,
		InvoiceUncollectible,
	})
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

func (in *invoiceInput) complete(d *draft) Record {
	v := &in.Invoice
	d.adopt(v.ID, &v.OrganizationID)
	d.require("currency", v.Currency != "")
	v.Type = orDefault(v.Type, InvoiceRegular)
	v.Status = orDefault(v.Status, InvoiceDraft)
	if v.Status == InvoiceDraft {
		v.InvoiceNumber = nil
	} else {
		d.require("invoiceNumber", orValue(v.InvoiceNumber, "") != "")
	}
	d.address("billingAddress", v.BillingAddress)
	d.taxLines(v.TaxLines)
	in.completeLines(d)
	v.Metadata = d.freeForm("metadata", v.Metadata)
	v.CreatedAt = orValue(in.CreatedAt, d.createdAt)
	v.UpdatedAt = d.updatedAt
	if d.ok() {
		in.deriveTotals(d)
	}
	return v
}

func (in *invoiceInput) completeLines(d *draft) {
	if !d.count("lines", len(in.Lines), maxNested) {
		return
	}
	in.Invoice.Lines = make([]InvoiceLine, len(in.Lines))
	for i := range in.Lines {
		line := &in.Lines[i]
		path := "lines[" + strconv.Itoa(i) + "]."
		d.nestedID(&line.ID, "lines", i)
		d.require(path+"description", line.Description != "")
		d.require(path+"quantity", line.Quantity != nil)
		d.require(path+"unitPrice", line.UnitPrice != nil)
		d.percent(path+"taxRate", line.TaxRate)
		line.Unit = orDefault(line.Unit, UnitPiece)
	}
}

// deriveTotals fills what the sender left out of the invoice's arithmetic.
func (in *invoiceInput) deriveTotals(d *draft) {
	v := &in.Invoice
	sums := documentSums{subtotal: in.Subtotal, discount: in.DiscountTotal, tax: in.TaxTotal, total: in.Total}
	for i := range in.Lines {
		line := &in.Lines[i]
		l := lineSums{
			quantity: *line.Quantity, unitPrice: *line.UnitPrice,
			discount: orValue(line.DiscountAmount, 0), taxRate: orValue(line.TaxRate, 0),
			subtotal: line.Subtotal, tax: line.TaxAmount, total: line.Total,
		}
		got := d.line("lines["+strconv.Itoa(i)+"].", l, false)
		line.InvoiceLine.Quantity, line.InvoiceLine.UnitPrice = l.quantity, l.unitPrice
		line.InvoiceLine.Subtotal, line.InvoiceLine.TaxAmount, line.InvoiceLine.Total = got.subtotal, got.tax, got.total
		v.Lines[i] = line.InvoiceLine
		sums.add(got)
	}
	got := d.document(sums)
	v.Subtotal, v.DiscountTotal, v.TaxTotal, v.Total = got.subtotal, got.discount, got.tax, got.total
	v.AmountPaid = orValue(in.AmountPaid, 0)
	v.AmountDue = d.bounded("amountDue", in.AmountDue, max(0, v.Total-v.AmountPaid))
}
