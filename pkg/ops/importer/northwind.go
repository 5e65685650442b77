package importer

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json/jsontext"
)

// northwindFiles are the files of the Northwind directory, in the order that
// the fingerprint of a source has.
func northwindFiles(dir string) (paths []string) {
	for _, file := range []string{"categories.csv", "products.csv", "customers.csv", "orders.csv", "order_details.csv"} {
		paths = append(paths, filepath.Join(dir, file))
	}
	return paths
}

// IsNorthwind reports whether dir holds the files of the Northwind database.
func IsNorthwind(dir string) bool {
	for _, path := range northwindFiles(dir) {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// northwindDB is the Northwind database while it is read. It is a few thousand
// rows, and a customer needs the sums of all orders, so it is held whole.
type northwindDB struct {
	*sheet            // the table that is being read
	records  []Record // categories and products
	orders   []Record
	products map[string]string // id to name
	buyers   map[string]*buyer // by customer id
	codes    []string          // of the customers, as the file has them
	lines    map[string]*orderLines
}

// buyer is a customer with the sums over its orders.
type buyer struct {
	place   Place
	id      value.ID
	company *string
	address jsontext.Value
	fields  []any // names and values of the other fields
	orders  int
	spent   value.Amount
	last    *value.Time
}

// orderLines are the lines of one order.
type orderLines struct {
	lines []orderLine
	bad   *Rejection // of a line that cannot be read
}

type orderLine struct {
	id            value.ID
	quantity, net value.Amount // net is less the discount
	fields        []any        // names and values of its other fields
}

// readNorthwind emits categories, products, customers and orders, so that what
// is referred to comes first. Rejected rows come before them all.
func (s *Source) readNorthwind(emit emitter) error {
	db := &northwindDB{products: map[string]string{}, buyers: map[string]*buyer{}, lines: map[string]*orderLines{}}
	for _, table := range []struct {
		file     int // in the order of northwindFiles
		required []string
		row      func()
	}{
		{0, []string{"categoryID", "categoryName", "description"}, db.category},
		{1, []string{"productID", "productName", "categoryID", "unitPrice", "discontinued"}, db.product},
		{2, []string{"customerID", "companyName", "contactName", "country"}, db.customer},
		{4, []string{"orderID", "productID", "unitPrice", "quantity", "discount"}, db.orderLine},
		{3, []string{"orderID", "customerID", "orderDate", "shippedDate", "freight"}, db.order},
	} {
		if err := s.readFile(s.paths[table.file], func(name string, r io.Reader) (err error) {
			if db.sheet, err = openSheet(name, r, ',', table.required...); err != nil {
				return err
			}
			db.null = "NULL"
			return db.each(emit, table.row)
		}); err != nil {
			return err
		}
	}
	records := db.records
	for _, code := range db.codes {
		records = append(records, db.buyers[code].record())
	}
	for _, r := range append(records, db.orders...) {
		if err := emit(r, nil); err != nil {
			return err
		}
	}
	return nil
}

// required is amount for a cell that must not be empty.
func (db *northwindDB) required(column string) value.Amount {
	a := db.amount(column)
	if a == nil {
		db.reject(column, "must be a number")
		return 0
	}
	return *a
}

// time reads 1996-07-04 00:00:00.000, which the dump means in UTC.
func (db *northwindDB) time(column string) *value.Time {
	cell := db.get(column)
	if cell == "" {
		return nil
	}
	t, err := time.Parse("2006-01-02 15:04:05.000", cell)
	if err != nil {
		db.reject(column, "must be a time such as 1996-07-04 00:00:00.000")
	}
	at := value.TimeOf(t)
	return &at
}

// discount reads the column that Northwind declares as a binary float of four
// bytes, so that a dump may say 0.15000001 or 0.15000000596046448 for 0.15. It
// is the shortest decimal that is the same float.
func (db *northwindDB) discount(column string) value.Amount {
	cell := db.get(column)
	a, err := value.ParseAmount(cell)
	if err != nil {
		f, ferr := strconv.ParseFloat(cell, 32)
		if ferr != nil {
			db.reject(column, "%s", err)
			return 0
		}
		a, err = value.ParseAmount(strconv.FormatFloat(f, 'f', -1, 32))
	}
	if err != nil || a < 0 || a > value.AmountScale {
		db.reject(column, "must be a fraction between 0 and 1 with at most 4 decimals")
	}
	return a
}

// country gives the ISO 3166-1 alpha-2 code of a country's name as Northwind
// writes it.
func (db *northwindDB) country(column string) *string {
	name := db.get(column)
	if name == "" {
		return nil
	}
	code, ok := map[string]string{
		"Argentina": "AR", "Austria": "AT", "Belgium": "BE", "Brazil": "BR", "Canada": "CA", "Denmark": "DK",
		"Finland": "FI", "France": "FR", "Germany": "DE", "Ireland": "IE", "Italy": "IT", "Mexico": "MX",
		"Norway": "NO", "Poland": "PL", "Portugal": "PT", "Spain": "ES", "Sweden": "SE", "Switzerland": "CH",
		"UK": "GB", "USA": "US", "Venezuela": "VE",
	}[name]
	if !ok {
		db.reject(column, "%q is not a country of Northwind", name)
	}
	return &code
}

func northwindID(kind, key string) value.ID {
	return value.DeriveID(namespace, "northwind/"+kind+"/"+key)
}

func (db *northwindDB) category() {
	id := db.get("categoryID")
	position, err := strconv.Atoi(id)
	if err != nil {
		db.reject("categoryID", "must be a whole number")
		return
	}
	db.records = append(db.records, put(commerce.KindCategory, db.place(), object(
		"id", northwindID("category", id), "name", db.get("categoryName"), "description", db.maybe("description"),
		"isActive", true, "order", position,
	)))
}

func (db *northwindDB) product() {
	id, name := db.get("productID"), db.get("productName")
	var category any
	if key := db.get("categoryID"); key != "" {
		category = northwindID("category", key)
	}
	product := object(
		"id", northwindID("product", id), "name", name, "type", "PHYSICAL", "categoryId", category, "unit", "PIECE",
		"sellingPrice", db.amount("unitPrice"), "isActive", db.get("discontinued") == "0", "trackInventory", true,
		"reorderPoint", db.amount("reorderLevel"), "attributes", db.texts(map[string]string{
			"northwindProduct": "productID", "quantityPerUnit": "quantityPerUnit", "supplier": "supplierID",
			"unitsInStock": "unitsInStock", "unitsOnOrder": "unitsOnOrder",
		}),
	)
	if db.err == nil {
		db.products[id] = name
		db.records = append(db.records, put(commerce.KindProduct, db.place(), product))
	}
}

func (db *northwindDB) customer() {
	code := db.get("customerID")
	if code == "" {
		db.reject("customerID", "is required")
	}
	country := db.country("country")
	if db.err != nil {
		return
	}
	first, last := splitName(db.get("contactName"))
	company, phone := db.maybe("companyName"), db.maybe("phone")
	id := northwindID("customer", code)
	home := value.DeriveID(id, "address")
	address := object(
		"id", home, "firstName", first, "lastName", last, "company", company, "line1", db.maybe("address"),
		"city", db.maybe("city"), "state", db.maybe("region"), "postalCode", db.maybe("postalCode"), "country", country, "phone", phone,
	)
	db.codes = append(db.codes, code)
	db.buyers[code] = &buyer{place: db.place(), id: id, company: company, address: address, fields: []any{
		"id", id, "customerNumber", code, "externalRef", code, "type", "BUSINESS", "firstName", first, "lastName", last,
		"companyName", company, "phone", phone, "isActive", true, "currency", "USD",
		"addresses",
		[]jsontext.Value{address},
		"defaultBillingAddressId", home, "defaultShippingAddressId", home,
		"metadata", db.texts(map[string]string{"contactTitle": "contactTitle", "fax": "fax"}),
	}}
}

func (b *buyer) record() Record {
	return put(commerce.KindCustomer, b.place, object(append(b.fields,
		"ordersCount", b.orders, "totalSpent", b.spent, "lastOrderAt", b.last)...))
}

// splitName divides a contact's name. The last name begins at the first
// particle (de, van, da), else it is the last word: Isabel / de Castro,
// José Pedro / Freyre.
func splitName(full string) (first, last *string) {
	words := strings.Fields(full)
	if len(words) == 0 {
		return nil, nil
	}
	cut := len(words) - 1
	for i, w := range words[1:] {
		if w == strings.ToLower(w) {
			cut = i + 1
			break
		}
	}
	if cut == 0 {
		return &words[0], nil
	}
	return orNil(strings.Join(words[:cut], " ")), orNil(strings.Join(words[cut:], " "))
}

// orderLine adds one line to its order. A bad line is the whole order's: an
// order short of a line would be wrong without anybody noticing.
func (db *northwindDB) orderLine() {
	order, product := db.get("orderID"), db.get("productID")
	lines := db.lines[order]
	if lines == nil {
		lines = &orderLines{}
		db.lines[order] = lines
	}
	name, known := db.products[product]
	if !known {
		db.reject("productID", "%q is not in products.csv", product)
	}
	price, quantity, fraction := db.required("unitPrice"), db.required("quantity"), db.discount("discount")
	gross, ok := price.MulDiv(quantity, value.AmountScale)
	if !ok || (price%value.AmountScale)*(quantity%value.AmountScale)%value.AmountScale != 0 {
		db.reject("unitPrice", "times quantity has more than 4 decimals or is out of range")
	}
	discount, _ := gross.MulDiv(fraction, value.AmountScale)
	if errors.As(db.err, &lines.bad) {
		return
	}
	id := value.DeriveID(northwindID("order", order), "item/"+product)
	lines.lines = append(lines.lines, orderLine{id: id, quantity: quantity, net: gross - discount, fields: []any{
		"productId", northwindID("product", product), "name", name, "unit", "PIECE", "unitPrice", price, "discountAmount", discount,
	}})
}

// order makes an order. It invents nothing that the database does not record,
// with one exception: there are no payments, and a shipped order counts as
// completed and paid in full, an unshipped one as being processed and unpaid.
func (db *northwindDB) order() {
	number := db.get("orderID")
	lines := db.lines[number]
	if lines == nil {
		lines = &orderLines{}
	}
	if lines.bad != nil {
		db.reject("items", "has a line that cannot be read (%s)", lines.bad.Place)
		return
	}
	customer := db.buyers[db.get("customerID")]
	if customer == nil {
		db.reject("customerID", "%q is not in customers.csv", db.get("customerID"))
		return
	}
	placed := db.time("orderDate")
	if placed == nil {
		db.reject("orderDate", "is required")
	}
	freight, country := db.required("freight"), db.country("shipCountry")
	shipped := db.time("shippedDate")
	// The service derives the same total from the lines and the freight.
	total, ok := freight, true
	items, parcel := []jsontext.Value{}, []jsontext.Value(nil)
	for _, l := range lines.lines {
		fulfilled := value.Amount(0)
		if shipped != nil {
			fulfilled = l.quantity
		}
		items = append(items, object(append(l.fields, "id", l.id, "quantity", l.quantity, "fulfilledQuantity", fulfilled)...))
		parcel = append(parcel, object("itemId", l.id, "quantity", l.quantity))
		if ok {
			total, ok = total.Add(l.net)
		}
	}
	if !ok {
		db.reject("total", "is out of range")
	}
	if db.err == nil {
		db.addTo(customer, total, *placed)
	}
	if db.err != nil {
		return
	}
	id := northwindID("order", number)
	status, payment, fulfillment, paid, shipments := "PROCESSING", "UNPAID", "UNFULFILLED", value.Amount(0), []jsontext.Value(nil)
	if shipped != nil {
		// Northwind's table of shippers has these three rows.
		carrier := map[string]string{"1": "Speedy Express", "2": "United Package", "3": "Federal Shipping"}[db.get("shipVia")]
		status, payment, fulfillment, paid = "COMPLETED", "PAID", "SHIPPED", total
		shipments = []jsontext.Value{object(
			"id", value.DeriveID(id, "shipment"), "carrier", orNil(carrier), "items", parcel, "shippedAt", shipped)}
	}
	metadata := db.texts(map[string]string{"employee": "employeeID", "shipVia": "shipVia"})
	if date, _, _ := strings.Cut(db.get("requiredDate"), " "); date != "" {
		metadata["requiredDate"] = date
	}
	db.orders = append(db.orders, put(commerce.KindOrder, db.place(), object(
		"id", id, "orderNumber", number, "externalRef", number, "source", "IMPORT",
		"status", status, "paymentStatus", payment, "fulfillmentStatus", fulfillment, "currency", "USD",
		"customerId", customer.id, "customerName", customer.company, "billingAddress", customer.address,
		"shippingAddress", object(
			"id", value.DeriveID(id, "shippingAddress"), "company", db.maybe("shipName"), "line1", db.maybe("shipAddress"),
			"city", db.maybe("shipCity"), "state", db.maybe("shipRegion"), "postalCode", db.maybe("shipPostalCode"), "country", country,
		),
		"items", items, "shipments", shipments, "shippingTotal", freight, "paidTotal", paid, "metadata", metadata,
		"placedAt", placed, "fulfilledAt", shipped, "completedAt", shipped, "createdAt", placed,
	)))
}

// addTo counts an order of the customer.
func (db *northwindDB) addTo(b *buyer, total value.Amount, at value.Time) {
	spent, ok := b.spent.Add(total)
	if !ok {
		db.reject("total", "takes the customer's totalSpent out of range")
		return
	}
	b.spent = spent
	b.orders++
	if b.last == nil || at > *b.last {
		b.last = &at
	}
}
