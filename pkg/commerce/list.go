package commerce

import (
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/listing"
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
func ListOf(kind Kind) *listing.List {
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
	productSchema = index.MustSchema("products",
		index.Column{Name: "siteIds", Type: index.Keyword},
		index.Column{Name: "categoryId", Type: index.Keyword},
		index.Column{Name: "brandId", Type: index.Keyword},
		index.Column{Name: "type", Type: index.Keyword},
		index.Column{Name: "isActive", Type: index.Bool},
		index.Column{Name: "trackInventory", Type: index.Bool},
		index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
		index.Column{Name: "sku", Type: index.Text, Search: true, Sort: true, Match: true},
		index.Column{Name: "barcode", Type: index.Text, Search: true, Match: true},
		index.Column{Name: "tags", Type: index.Text, Search: true},
		index.Column{Name: "sellingPrice", Type: index.Number, Sort: true},
		index.Column{Name: "purchasePrice", Type: index.Number, Sort: true},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
		index.Column{Name: "updatedAt", Type: index.Time, Sort: true},
	)
	categorySchema = index.MustSchema("categories",
		index.Column{Name: "siteId", Type: index.Keyword},
		index.Column{Name: "parentId", Type: index.Keyword},
		index.Column{Name: "isActive", Type: index.Bool},
		index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
		index.Column{Name: "slug", Type: index.Text, Search: true, Match: true},
		index.Column{Name: "order", Type: index.Number, Sort: true},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
		index.Column{Name: "updatedAt", Type: index.Time, Sort: true},
	)
	orderSchema = index.MustSchema("orders",
		index.Column{Name: "siteId", Type: index.Keyword},
		index.Column{Name: "status", Type: index.Keyword},
		index.Column{Name: "paymentStatus", Type: index.Keyword},
		index.Column{Name: "fulfillmentStatus", Type: index.Keyword},
		index.Column{Name: "customerId", Type: index.Keyword},
		index.Column{Name: "currency", Type: index.Keyword},
		index.Column{Name: "orderNumber", Type: index.Text, Search: true, Sort: true, Match: true},
		index.Column{Name: "customerName", Type: index.Text, Search: true},
		index.Column{Name: "customerEmail", Type: index.Text, Search: true},
		index.Column{Name: "externalRef", Type: index.Text, Match: true},
		index.Column{Name: "total", Type: index.Number, Sort: true},
		index.Column{Name: "placedAt", Type: index.Time, Sort: true},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
		index.Column{Name: "updatedAt", Type: index.Time, Sort: true},
	)
	customerSchema = index.MustSchema("customers",
		index.Column{Name: "siteId", Type: index.Keyword},
		index.Column{Name: "type", Type: index.Keyword},
		index.Column{Name: "isActive", Type: index.Bool},
		index.Column{Name: "firstName", Type: index.Text, Search: true},
		index.Column{Name: "lastName", Type: index.Text, Search: true, Sort: true},
		index.Column{Name: "companyName", Type: index.Text, Search: true},
		index.Column{Name: "email", Type: index.Text, Search: true, Match: true},
		index.Column{Name: "phone", Type: index.Text, Search: true},
		index.Column{Name: "customerNumber", Type: index.Text, Search: true, Match: true},
		index.Column{Name: "externalRef", Type: index.Text, Match: true},
		index.Column{Name: "totalSpent", Type: index.Number, Sort: true},
		index.Column{Name: "ordersCount", Type: index.Number, Sort: true},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
		index.Column{Name: "updatedAt", Type: index.Time, Sort: true},
	)
	invoiceSchema = index.MustSchema("invoices",
		index.Column{Name: "siteId", Type: index.Keyword},
		index.Column{Name: "type", Type: index.Keyword},
		index.Column{Name: "status", Type: index.Keyword},
		index.Column{Name: "customerId", Type: index.Keyword},
		index.Column{Name: "orderId", Type: index.Keyword},
		index.Column{Name: "currency", Type: index.Keyword},
		index.Column{Name: "invoiceNumber", Type: index.Text, Search: true, Sort: true, Match: true},
		index.Column{Name: "customerName", Type: index.Text, Search: true},
		index.Column{Name: "externalRef", Type: index.Text, Match: true},
		index.Column{Name: "total", Type: index.Number, Sort: true},
		index.Column{Name: "amountDue", Type: index.Number},
		index.Column{Name: "issuedAt", Type: index.Time, Sort: true},
		index.Column{Name: "dueAt", Type: index.Time, Sort: true},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
		index.Column{Name: "updatedAt", Type: index.Time, Sort: true},
	)
)

var (
	productList = &listing.List{
		Name: "products", Schema: productSchema, Walk: true,
		Search: []string{"name", "sku", "barcode", "tags"},
		Orders: []listing.Order{
			listing.By("createdAt"), listing.By("updatedAt"), listing.ByText("name"), listing.ByText("sku"),
			listing.By("sellingPrice"), listing.By("purchasePrice"),
		},
		Filters: append([]listing.Filter{
			site("The site that sells the product; a product of no site is sold at every one. The same as X-Site-Id."),
			{Name: filterCategory, Kind: listing.ID, Description: "The product's category."},
			{
				Name: filterDescendants, Kind: listing.Bool, Default: "false",
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
	categoryList = &listing.List{
		Name: "categories", Schema: categorySchema, Walk: true,
		Search: []string{"name", "slug"},
		Orders: []listing.Order{listing.ByText("order"), listing.ByText("name"), listing.By("createdAt"), listing.By("updatedAt")},
		Filters: append([]listing.Filter{
			site("The site of the category. The same as X-Site-Id."),
			flag("isActive", "Whether the category is active."),
			{
				Name: "parentId", Kind: listing.ID, Column: "parentId", Null: rootCategory,
				Description: "The category above, a UUID, or root for the categories that have none.",
			},
			{
				Name: filterGlobal, Kind: listing.Bool,
				Description: "Whether categories of no site are listed; false under a site filter and true without, unless given.",
			},
			whole("slug", "The category's slug."),
		}, common("", "A category has no externalRef: the list is empty.")...),
	}
	orderList = &listing.List{
		Name: "orders", Schema: orderSchema, Walk: true,
		Search: []string{"orderNumber", "customerName", "customerEmail"},
		Orders: []listing.Order{
			listing.By("placedAt"), listing.By("createdAt"), listing.By("updatedAt"), listing.By("total"),
			listing.ByText("orderNumber"),
		},
		Filters: append([]listing.Filter{
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
	customerList = &listing.List{
		Name: "customers", Schema: customerSchema, Walk: true,
		Search: []string{"firstName", "lastName", "companyName", "email", "phone", "customerNumber"},
		Orders: []listing.Order{
			listing.By("createdAt"), listing.By("updatedAt"), listing.ByText("lastName"), listing.By("totalSpent"),
			listing.By("ordersCount"),
		},
		Filters: append([]listing.Filter{
			site("The site of the customer. The same as X-Site-Id."),
			oneOfThese("type", "Person or company.", CustomerType("").Values()),
			flag("isActive", "Whether the customer is active."),
			whole("email", "The customer's e-mail address."),
			whole("customerNumber", "The customer's number."),
		}, common(filterExternalRef, "The sender's reference.")...),
	}
	invoiceList = &listing.List{
		Name: "invoices", Schema: invoiceSchema, Walk: true,
		Search: []string{"invoiceNumber", "customerName"},
		Orders: []listing.Order{
			listing.By("issuedAt"), listing.By("createdAt"), listing.By("updatedAt"), listing.By("dueAt"), listing.By("total"),
			listing.ByText("invoiceNumber"),
		},
		Filters: append([]listing.Filter{
			site("The site of the invoice. The same as X-Site-Id."),
			oneOfThese("type", "Invoice or credit note.", InvoiceType("").Values()),
			oneOfThese("status", "The state of the invoice.", InvoiceStatus("").Values()),
			identifier("customerId", "The customer."),
			identifier("orderId", "The order."),
			{Name: filterOverdue, Kind: listing.Bool, Description: "Whether the invoice is overdue now."},
			inCurrencies(),
			whole("invoiceNumber", "The invoice's number."),
			within("issued", "issuedAt", "When the invoice was issued."),
			within("due", "dueAt", "When the invoice is due."),
		}, common(filterExternalRef, "The sender's reference.")...),
	}
)

// common are the filters that all five lists have. A kind without an
// external reference has no column for it.
func common(externalRef, text string) []listing.Filter {
	return []listing.Filter{
		{Name: "ids", Kind: listing.IDs, Max: maxIDs, Description: "The records with these ids, at most 100."},
		{Name: filterExternalRef, Kind: listing.Text, Column: externalRef, Description: text},
		within("created", "createdAt", "When the record was created."),
		{Name: "updated", Kind: listing.Visible, Description: "When the last change became visible in lists: updatedAt or, at most, " +
			"seconds later. Asking again from the Date of the last first page less 60 s misses nothing."},
	}
}

func site(text string) listing.Filter {
	return listing.Filter{Name: filterSite, Kind: listing.ID, Description: text}
}

func identifier(name, text string) listing.Filter {
	return listing.Filter{Name: name, Kind: listing.ID, Column: name, Description: text}
}

func flag(name, text string) listing.Filter {
	return listing.Filter{Name: name, Kind: listing.Bool, Column: name, Description: text}
}

func oneOfThese(name, text string, values []string) listing.Filter {
	return listing.Filter{Name: name, Kind: listing.Enum, Column: name, Values: values, Description: text}
}

func whole(name, text string) listing.Filter {
	return listing.Filter{Name: name, Kind: listing.Text, Column: name, Description: text + " Compared whole, regardless of case and accents."}
}

func within(name, column, text string) listing.Filter {
	return listing.Filter{Name: name, Kind: listing.Range, Column: column, Description: text}
}

func inCurrencies() listing.Filter {
	return listing.Filter{
		Name: "currency", Kind: listing.Code, Column: "currency", Description: "ISO 4217 codes.",
		Check: func(s string) error {
			_, err := ParseCurrency(s)
			return err
		},
	}
}
