package commerce

import (
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// Document is what a kind's index knows of a stored record; visible is when
// the revision became visible in lists. A tombstone gives a tombstone.
func Document(s *Stored, visible value.Time) (columnar.Document, error) {
	schema := ListOf(s.Kind).Schema
	if s.Deleted {
		return schema.Tombstone(s.ID, 0, int64(s.Revision), int64(visible)), nil
	}
	r, err := s.Record()
	if err != nil {
		return columnar.Document{}, err
	}
	b := columns{schema, schema.Build(s.ID, 0)}
	switch r := r.(type) {
	case *Product:
		b.keyword("siteIds", lists.Keys(s.SiteIDs)...)
		b.product(r)
	case *Category:
		b.category(r)
	case *Order:
		b.order(r)
	case *Customer:
		b.customer(r)
	case *Invoice:
		b.invoice(r)
	}
	head := r.Head()
	b.time("createdAt", &head.CreatedAt)
	b.time("updatedAt", &head.UpdatedAt)
	return b.Document(int64(s.Revision), int64(visible)), nil
}

// columns sets columns by name; what is null is left out.
type columns struct {
	schema *columnar.Schema
	*columnar.Builder
}

func (b columns) product(p *Product) {
	b.id("categoryId", p.CategoryID)
	b.id("brandId", p.BrandID)
	b.keyword("type", string(p.Type))
	b.flag("isActive", p.IsActive)
	b.flag("trackInventory", p.TrackInventory)
	b.text("name", &p.Name)
	b.text("sku", p.SKU)
	b.text("barcode", p.Barcode)
	b.Text(b.schema.Col("tags"), p.Tags...)
	b.amount("sellingPrice", p.SellingPrice)
	b.amount("purchasePrice", p.PurchasePrice)
}

func (b columns) category(c *Category) {
	b.id("siteId", c.SiteID)
	b.id("parentId", c.ParentID)
	b.flag("isActive", c.IsActive)
	b.text("name", &c.Name)
	b.text("slug", c.Slug)
	b.number("order", c.Order)
}

func (b columns) order(o *Order) {
	b.id("siteId", o.SiteID)
	b.keyword("status", string(o.Status))
	b.keyword("paymentStatus", string(o.PaymentStatus))
	b.keyword("fulfillmentStatus", string(o.FulfillmentStatus))
	b.id("customerId", o.CustomerID)
	b.keyword("currency", string(o.Currency))
	b.text("orderNumber", &o.OrderNumber)
	b.text("customerName", o.CustomerName)
	b.text("customerEmail", o.CustomerEmail)
	b.text("externalRef", o.ExternalRef)
	b.amount("total", &o.Total)
	b.time("placedAt", &o.PlacedAt)
}

func (b columns) customer(c *Customer) {
	b.id("siteId", c.SiteID)
	b.keyword("type", string(c.Type))
	b.flag("isActive", c.IsActive)
	b.text("firstName", c.FirstName)
	b.text("lastName", c.LastName)
	b.text("companyName", c.CompanyName)
	b.text("email", c.Email)
	b.text("phone", c.Phone)
	b.text("customerNumber", c.CustomerNumber)
	b.text("externalRef", c.ExternalRef)
	b.amount("totalSpent", &c.TotalSpent)
	b.number("ordersCount", c.OrdersCount)
}

func (b columns) invoice(v *Invoice) {
	b.id("siteId", v.SiteID)
	b.keyword("type", string(v.Type))
	b.keyword("status", string(v.Status))
	b.id("customerId", v.CustomerID)
	b.id("orderId", v.OrderID)
	b.keyword("currency", string(v.Currency))
	b.text("invoiceNumber", v.InvoiceNumber)
	b.text("customerName", v.CustomerName)
	b.text("externalRef", v.ExternalRef)
	b.amount("total", &v.Total)
	b.amount("amountDue", &v.AmountDue)
	b.time("issuedAt", v.IssuedAt)
	b.time("dueAt", v.DueAt)
}

func (b columns) keyword(name string, values ...string) { b.Keyword(b.schema.Col(name), values...) }

func (b columns) flag(name string, v bool) { b.Bool(b.schema.Col(name), v) }

func (b columns) number(name string, v int64) { b.Number(b.schema.Col(name), v) }

func (b columns) id(name string, id *value.ID) {
	if id != nil {
		b.keyword(name, lists.Key(*id))
	}
}

func (b columns) text(name string, s *string) {
	if s != nil {
		b.Text(b.schema.Col(name), *s)
	}
}

func (b columns) amount(name string, a *value.Amount) {
	if a != nil {
		b.number(name, int64(*a))
	}
}

func (b columns) time(name string, t *value.Time) {
	if t != nil {
		b.Time(b.schema.Col(name), int64(*t))
	}
}
