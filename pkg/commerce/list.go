package commerce

import (
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Names of filters whose meaning needs more than the query string.
const (
	filterSite        = "siteId"
	filterGlobal      = "includeGlobal"
	filterCategory    = "categoryId"
	filterDescendants = "includeDescendants"
	filterOverdue     = "isOverdue"
	filterExternalRef = "externalRef"

	rootCategory = "root"
	maxIDs       = 100
)

// ListOf returns the declaration of a kind's list. It is shared: do not
// change it. It panics on an unknown kind.
func ListOf(kind Kind) *lists.List {
	switch kind {
	case KindProduct:
		return productList
	case KindCategory:
		return categoryList
	case KindOrder:
		return orderList
	case KindCustomer:
		return customerList
	case KindInvoice:
		return invoiceList
	}
	panic("commerce: no kind " + string(kind))
}

// Documents are stored with the places of their columns: a schema only grows
// at its end.
var (
	productSchema = columnar.MustSchema("products",
		columnar.Column{Name: "siteIds", Type: columnar.Keyword},
		columnar.Column{Name: "categoryId", Type: columnar.Keyword},
		columnar.Column{Name: "brandId", Type: columnar.Keyword},
		columnar.Column{Name: "type", Type: columnar.Keyword},
		columnar.Column{Name: "isActive", Type: columnar.Bool},
		columnar.Column{Name: "trackInventory", Type: columnar.Bool},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
		columnar.Column{Name: "sku", Type: columnar.Text, Search: true, Sort: true, Match: true},
		columnar.Column{Name: "barcode", Type: columnar.Text, Search: true, Match: true},
		columnar.Column{Name: "tags", Type: columnar.Text, Search: true},
		columnar.Column{Name: "sellingPrice", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "purchasePrice", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
	)
	categorySchema = columnar.MustSchema("categories",
		columnar.Column{Name: "siteId", Type: columnar.Keyword},
		columnar.Column{Name: "parentId", Type: columnar.Keyword},
		columnar.Column{Name: "isActive", Type: columnar.Bool},
		columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
		columnar.Column{Name: "slug", Type: columnar.Text, Search: true, Match: true},
		columnar.Column{Name: "order", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
	)
	orderSchema = columnar.MustSchema("orders",
		columnar.Column{Name: "siteId", Type: columnar.Keyword},
		columnar.Column{Name: "status", Type: columnar.Keyword},
		columnar.Column{Name: "paymentStatus", Type: columnar.Keyword},
		columnar.Column{Name: "fulfillmentStatus", Type: columnar.Keyword},
		columnar.Column{Name: "customerId", Type: columnar.Keyword},
		columnar.Column{Name: "currency", Type: columnar.Keyword},
		columnar.Column{Name: "orderNumber", Type: columnar.Text, Search: true, Sort: true, Match: true},
		columnar.Column{Name: "customerName", Type: columnar.Text, Search: true},
		columnar.Column{Name: "customerEmail", Type: columnar.Text, Search: true},
		columnar.Column{Name: "externalRef", Type: columnar.Text, Match: true},
		columnar.Column{Name: "total", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "placedAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
	)
	customerSchema = columnar.MustSchema("customers",
		columnar.Column{Name: "siteId", Type: columnar.Keyword},
		columnar.Column{Name: "type", Type: columnar.Keyword},
		columnar.Column{Name: "isActive", Type: columnar.Bool},
		columnar.Column{Name: "firstName", Type: columnar.Text, Search: true},
		columnar.Column{Name: "lastName", Type: columnar.Text, Search: true, Sort: true},
		columnar.Column{Name: "companyName", Type: columnar.Text, Search: true},
		columnar.Column{Name: "email", Type: columnar.Text, Search: true, Match: true},
		columnar.Column{Name: "phone", Type: columnar.Text, Search: true},
		columnar.Column{Name: "customerNumber", Type: columnar.Text, Search: true, Match: true},
		columnar.Column{Name: "externalRef", Type: columnar.Text, Match: true},
		columnar.Column{Name: "totalSpent", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "ordersCount", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
	)
	invoiceSchema = columnar.MustSchema("invoices",
		columnar.Column{Name: "siteId", Type: columnar.Keyword},
		columnar.Column{Name: "type", Type: columnar.Keyword},
		columnar.Column{Name: "status", Type: columnar.Keyword},
		columnar.Column{Name: "customerId", Type: columnar.Keyword},
		columnar.Column{Name: "orderId", Type: columnar.Keyword},
		columnar.Column{Name: "currency", Type: columnar.Keyword},
		columnar.Column{Name: "invoiceNumber", Type: columnar.Text, Search: true, Sort: true, Match: true},
		columnar.Column{Name: "customerName", Type: columnar.Text, Search: true},
		columnar.Column{Name: "externalRef", Type: columnar.Text, Match: true},
		columnar.Column{Name: "total", Type: columnar.Number, Sort: true},
		columnar.Column{Name: "amountDue", Type: columnar.Number},
		columnar.Column{Name: "issuedAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "dueAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
	)
)

var (
	productList = &lists.List{
		Name: "products", Schema: productSchema, Walk: true,
		Orders: []lists.Order{
			lists.By("createdAt"), lists.By("updatedAt"), lists.ByText("name"), lists.ByText("sku"),
			lists.By("sellingPrice"), lists.By("purchasePrice"),
		},
		Filters: append([]lists.Filter{
			site("The site that sells the product; a product of no site is sold at every one. The same as X-Site-Id."),
			{Name: filterCategory, Kind: lists.ID, Description: "The product's category."},
			{
				Name: filterDescendants, Kind: lists.Bool, Default: "false",
				Description: "With categoryId: products of the categories below it too.",
			},
			identifier("brandId", "The product's brand."),
			flag("isActive", "Whether the product is active."),
			flag("trackInventory", "Whether the product's stock is tracked."),
			oneOfThese("type", "The nature of the product.", ProductType("").Values()),
			whole("sku", "The product's SKU."),
			whole("barcode", "The product's barcode."),
		}, common("", "A product has no externalRef: the list is empty.")...),
	}
	categoryList = &lists.List{
		Name: "categories", Schema: categorySchema, Walk: true,
		Orders: []lists.Order{lists.ByText("order"), lists.ByText("name"), lists.By("createdAt"), lists.By("updatedAt")},
		Filters: append([]lists.Filter{
			site("The site of the category. The same as X-Site-Id."),
			flag("isActive", "Whether the category is active."),
			{
				Name: "parentId", Kind: lists.ID, Column: "parentId", Null: rootCategory,
				Description: "The category above, a UUID, or root for the categories that have none.",
			},
			{
				Name: filterGlobal, Kind: lists.Bool,
				Description: "Whether categories of no site are listed; false under a site filter and true without, unless given.",
			},
			whole("slug", "The category's slug."),
		}, common("", "A category has no externalRef: the list is empty.")...),
	}
	orderList = &lists.List{
		Name: "orders", Schema: orderSchema, Walk: true,
		Orders: []lists.Order{
			lists.By("placedAt"), lists.By("createdAt"), lists.By("updatedAt"), lists.By("total"),
			lists.ByText("orderNumber"),
		},
		Filters: append([]lists.Filter{
			site("The site of the order. The same as X-Site-Id."),
			oneOfThese("status", "The state of the order.", OrderStatus("").Values()),
			oneOfThese("paymentStatus", "The state of the order's money.", PaymentStatus("").Values()),
			oneOfThese("fulfillmentStatus", "The state of the order's goods.", FulfillmentStatus("").Values()),
			identifier("customerId", "The customer."),
			inCurrencies(),
			whole("orderNumber", "The order's number."),
			within("placed", "placedAt", "When the order was placed."),
		}, common(filterExternalRef, "The sender's reference.")...),
	}
	customerList = &lists.List{
		Name: "customers", Schema: customerSchema, Walk: true,
		Orders: []lists.Order{
			lists.By("createdAt"), lists.By("updatedAt"), lists.ByText("lastName"), lists.By("totalSpent"),
			lists.By("ordersCount"),
		},
		Filters: append([]lists.Filter{
			site("The site of the customer. The same as X-Site-Id."),
			oneOfThese("type", "Person or company.", CustomerType("").Values()),
			flag("isActive", "Whether the customer is active."),
			whole("email", "The customer's e-mail address."),
			whole("customerNumber", "The customer's number."),
		}, common(filterExternalRef, "The sender's reference.")...),
	}
	invoiceList = &lists.List{
		Name: "invoices", Schema: invoiceSchema, Walk: true,
		Orders: []lists.Order{
			lists.By("issuedAt"), lists.By("createdAt"), lists.By("updatedAt"), lists.By("dueAt"), lists.By("total"),
			lists.ByText("invoiceNumber"),
		},
		Filters: append([]lists.Filter{
			site("The site of the invoice. The same as X-Site-Id."),
			oneOfThese("type", "Invoice or credit note.", InvoiceType("").Values()),
			oneOfThese("status", "The state of the invoice.", InvoiceStatus("").Values()),
			identifier("customerId", "The customer."),
			identifier("orderId", "The order."),
			{Name: filterOverdue, Kind: lists.Bool, Description: "Whether the invoice is overdue now."},
			inCurrencies(),
			whole("invoiceNumber", "The invoice's number."),
			within("issued", "issuedAt", "When the invoice was issued."),
			within("due", "dueAt", "When the invoice is due."),
		}, common(filterExternalRef, "The sender's reference.")...),
	}
)

// common are the filters that all five lists have. A kind without an
// external reference has no column for it.
func common(externalRef, text string) []lists.Filter {
	return []lists.Filter{
		{Name: "ids", Kind: lists.IDs, Max: maxIDs, Description: "The records with these ids, at most 100."},
		{Name: filterExternalRef, Kind: lists.Text, Column: externalRef, Description: text},
		within("created", "createdAt", "When the record was created."),
		{Name: "updated", Kind: lists.Visible, Description: "When the last change became visible in lists: updatedAt or, at most, " +
			"seconds later. Asking again from the Date of the last first page less 60 s misses nothing."},
	}
}

func site(text string) lists.Filter {
	return lists.Filter{Name: filterSite, Kind: lists.ID, Description: text}
}

func identifier(name, text string) lists.Filter {
	return lists.Filter{Name: name, Kind: lists.ID, Column: name, Description: text}
}

func flag(name, text string) lists.Filter {
	return lists.Filter{Name: name, Kind: lists.Bool, Column: name, Description: text}
}

func oneOfThese(name, text string, values []string) lists.Filter {
	return lists.Filter{Name: name, Kind: lists.Enum, Column: name, Values: values, Description: text}
}

func whole(name, text string) lists.Filter {
	return lists.Filter{Name: name, Kind: lists.Text, Column: name, Description: text + " Compared whole, regardless of case and accents."}
}

func within(name, column, text string) lists.Filter {
	return lists.Filter{Name: name, Kind: lists.Range, Column: column, Description: text}
}

func inCurrencies() lists.Filter {
	return lists.Filter{
		Name: "currency", Kind: lists.Code, Column: "currency", Description: "ISO 4217 codes.",
		Check: func(s string) error {
			_, err := ParseCurrency(s)
			return err
		},
	}
}
