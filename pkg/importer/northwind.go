package importer

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// northwindFiles are the files of the Northwind directory, in the order that
// the fingerprint of a source has.
func northwindFiles(dir string) []string {
	return []string{
		filepath.Join(dir, "categories.csv"), filepath.Join(dir, "products.csv"), filepath.Join(dir, "customers.csv"),
		filepath.Join(dir, "orders.csv"), filepath.Join(dir, "order_details.csv"),
	}
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
	records   []Record // categories and products
	orders    []Record
	bad       []*Rejection
	products  map[string]string // id to name
	customers map[string]*northwindCustomer
	codes     []string // of the customers, as the file has them
	lines     map[string]*orderLines
}

// northwindCustomer is a customer with the sums over its orders.
type northwindCustomer struct {
	place    Place
	id       value.ID
	company  *string
	address  jsontext.Value
	fields   []any // before the sums
	metadata map[string]any
	orders   int
	spent    value.Amount
	last     *value.Time
}

// orderLines are the lines of one order.
type orderLines struct {
	lines []orderLine
	bad   *Rejection // of a line that cannot be read
}

type orderLine struct {
	id                  value.ID
	product, name       string
	quantity, unitPrice value.Amount
	gross, discount     value.Amount
	fulfilled           value.Amount
}

// northwind yields categories, products, customers and orders, so that what
// is referred to comes first.
func (s *Source) northwind(yield func(Record, error) bool) {
	db := &northwindDB{
		products: map[string]string{}, customers: map[string]*northwindCustomer{}, lines: map[string]*orderLines{},
	}
	if err := db.load(s); err != nil {
		yield(Record{}, err)
		return
	}
	for _, r := range db.bad {
		if !yield(Record{}, r) {
			return
		}
	}
	for _, r := range db.records {
		if !yield(r, nil) {
			return
		}
	}
	for _, code := range db.codes {
		if !yield(db.customers[code].record(), nil) {
			return
		}
	}
	for _, r := range db.orders {
		if !yield(r, nil) {
			return
		}
	}
}

func (db *northwindDB) load(s *Source) error {
	for _, table := range []struct {
		file     string
		required []string
		row      func(*dumpRow)
	}{
		{"categories.csv", []string{"categoryID", "categoryName", "description"}, db.category},
		{"products.csv", []string{"productID", "productName", "categoryID", "unitPrice", "discontinued"}, db.product},
		{"customers.csv", []string{"customerID", "companyName", "contactName", "country"}, db.customer},
		{"order_details.csv", []string{"orderID", "productID", "unitPrice", "quantity", "discount"}, db.orderLine},
		{"orders.csv", []string{"orderID", "customerID", "orderDate", "shippedDate", "freight"}, db.order},
	} {
		if err := db.read(s, filepath.Join(filepath.Dir(s.paths[0]), table.file), table.required, table.row); err != nil {
			return err
		}
	}
	return nil
}

// read calls row for every row of a file and keeps the rejections.
func (db *northwindDB) read(s *Source, path string, required []string, row func(*dumpRow)) error {
	file, err := s.open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sh, err := openSheet(filepath.Base(path), file, required...)
	if err != nil {
		return err
	}
	sh.null = "NULL"
	for err := range sh.rows() {
		if err == nil {
			r := &dumpRow{sheet: sh}
			row(r)
			err = r.err
		}
		var bad *Rejection
		switch {
		case errors.As(err, &bad):
			db.bad = append(db.bad, bad)
		case err != nil:
			return err
		}
	}
	return nil
}

// dumpRow reads the cells of a row. The first one that cannot be read rejects
// the row; the values after it mean nothing.
type dumpRow struct {
	*sheet
	err error
}

func (r *dumpRow) reject(column, format string, args ...any) {
	if r.err == nil {
		r.err = rejectField(r.place(), column, format, args...)
	}
}

func (r *dumpRow) amount(column string) (a value.Amount) {
	if given := r.amountOrNil(column); given != nil {
		return *given
	}
	r.reject(column, "must be a number")
	return 0
}

// amountOrNil is amount for a column that may hold no value.
func (r *dumpRow) amountOrNil(column string) *value.Amount {
	a, err := r.sheet.amount(column)
	if r.err == nil && err != nil {
		r.err = err
	}
	return a
}

// time reads 1996-07-04 00:00:00.000, which the dump means in UTC.
func (r *dumpRow) time(column string) *value.Time {
	cell := r.get(column)
	if cell == "" {
		return nil
	}
	t, err := time.Parse("2006-01-02 15:04:05.000", cell)
	if err != nil {
		r.reject(column, "must be a time such as 1996-07-04 00:00:00.000")
	}
	at := value.TimeOf(t)
	return &at
}

// discount reads the column that Northwind declares as a binary float of four
// bytes, so that a dump may say 0.15000001 or 0.15000000596046448 for 0.15. It
// is the shortest decimal that is the same float.
func (r *dumpRow) discount(column string) value.Amount {
	cell := r.get(column)
	a, err := value.ParseAmount(cell)
	if err != nil {
		f, ferr := strconv.ParseFloat(cell, 32)
		if ferr != nil {
			r.reject(column, "%s", err)
			return 0
		}
		a, err = value.ParseAmount(strconv.FormatFloat(f, 'f', -1, 32))
	}
	if err != nil || a < 0 || a > value.AmountScale {
		r.reject(column, "must be a fraction between 0 and 1 with at most 4 decimals")
	}
	return a
}

// country gives the ISO 3166-1 alpha-2 code of a country's name as Northwind
// writes it.
func (r *dumpRow) country(column string) *string {
	name := r.get(column)
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
		r.reject(column, "%q is not a country of Northwind", name)
	}
	return &code
}

func northwindID(kind, key string) value.ID {
	return value.DeriveID(namespace, "northwind/"+kind+"/"+key)
}

func (db *northwindDB) category(r *dumpRow) {
	id := r.get("categoryID")
	position, err := strconv.Atoi(id)
	if err != nil {
		r.reject("categoryID", "must be a whole number")
		return
	}
	db.records = append(db.records, put(commerce.KindCategory, r.place(), object(
		"id", northwindID("category", id), "name", r.get("categoryName"), "description", r.text("description"),
		"isActive", true, "order", position,
	)))
}

func (db *northwindDB) product(r *dumpRow) {
	id, name := r.get("productID"), r.get("productName")
	price, reorder := r.amountOrNil("unitPrice"), r.amountOrNil("reorderLevel")
	if r.err != nil {
		return
	}
	var category *value.ID
	if key := r.get("categoryID"); key != "" {
		derived := northwindID("category", key)
		category = &derived
	}
	db.products[id] = name
	db.records = append(db.records, put(commerce.KindProduct, r.place(), object(
		"id", northwindID("product", id), "name", name, "type", "PHYSICAL", "categoryId", category, "unit", "PIECE",
		"sellingPrice", price, "isActive", r.get("discontinued") == "0", "trackInventory", true, "reorderPoint", reorder,
		"attributes", present(map[string]string{
			"northwindProduct": id, "quantityPerUnit": r.get("quantityPerUnit"), "supplier": r.get("supplierID"),
			"unitsInStock": r.get("unitsInStock"), "unitsOnOrder": r.get("unitsOnOrder"),
		}),
	)))
}

func (db *northwindDB) customer(r *dumpRow) {
	code := r.get("customerID")
	if code == "" {
		r.reject("customerID", "is required")
	}
	country := r.country("country")
	if r.err != nil {
		return
	}
	first, last := splitName(r.get("contactName"))
	company, phone := r.text("companyName"), r.text("phone")
	id := northwindID("customer", code)
	home := value.DeriveID(id, "address")
	address := object(
		"id", home, "firstName", first, "lastName", last, "company", company, "line1", r.text("address"), "city", r.text("city"),
		"state", r.text("region"), "postalCode", r.text("postalCode"), "country", country, "phone", phone,
	)
	db.codes = append(db.codes, code)
	db.customers[code] = &northwindCustomer{
		place: r.place(), id: id, company: company, address: address,
		metadata: present(map[string]string{"contactTitle": r.get("contactTitle"), "fax": r.get("fax")}),
		fields: []any{
			"id", id, "customerNumber", code, "externalRef", code, "type", "BUSINESS", "firstName", first, "lastName", last,
			"companyName", company, "phone", phone, "isActive", true, "currency", "USD",
			"addresses", []jsontext.Value{address}, "defaultBillingAddressId", home, "defaultShippingAddressId", home,
		},
	}
}

func (c *northwindCustomer) record() Record {
	return put(commerce.KindCustomer, c.place, object(append(c.fields,
		"ordersCount", c.orders, "totalSpent", c.spent, "lastOrderAt", c.last, "metadata", c.metadata)...))
}

// splitName parts a contact's name. The last name begins at the first
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
func (db *northwindDB) orderLine(r *dumpRow) {
	order, key := r.get("orderID"), r.get("productID")
	lines := db.lines[order]
	if lines == nil {
		lines = &orderLines{}
		db.lines[order] = lines
	}
	name, known := db.products[key]
	if !known {
		r.reject("productID", "%q is not in products.csv", key)
	}
	l := orderLine{id: value.DeriveID(northwindID("order", order), "item/"+key), product: key, name: name}
	l.unitPrice, l.quantity = r.amount("unitPrice"), r.amount("quantity")
	fraction := r.discount("discount")
	var ok bool
	if l.gross, ok = l.unitPrice.MulDiv(l.quantity, value.AmountScale); !ok || !isExact(l.unitPrice, l.quantity) {
		r.reject("unitPrice", "times quantity has more than 4 decimals or is out of range")
	}
	l.discount, _ = l.gross.MulDiv(fraction, value.AmountScale)
	if errors.As(r.err, &lines.bad) {
		return
	}
	lines.lines = append(lines.lines, l)
}

// isExact reports whether four decimals hold the product of two amounts.
func isExact(a, b value.Amount) bool {
	return (a%value.AmountScale)*(b%value.AmountScale)%value.AmountScale == 0
}

// order makes an order. It invents nothing that the database does not record,
// with one exception: there are no payments, and a shipped order counts as
// completed and paid in full, an unshipped one as being processed and unpaid.
func (db *northwindDB) order(r *dumpRow) {
	number := r.get("orderID")
	lines := db.lines[number]
	if lines == nil {
		lines = &orderLines{}
	}
	if lines.bad != nil {
		r.reject("items", "has a line that cannot be read (%s)", lines.bad.Place)
		return
	}
	customer := db.customers[r.get("customerID")]
	if customer == nil {
		r.reject("customerID", "%q is not in customers.csv", r.get("customerID"))
		return
	}
	placed := r.time("orderDate")
	if placed == nil {
		r.reject("orderDate", "is required")
	}
	freight, country := r.amount("freight"), r.country("shipCountry")
	total, ok := lines.total(freight)
	if !ok {
		r.reject("total", "is out of range")
	}
	shipped := r.time("shippedDate")
	if r.err == nil {
		customer.add(r, total, *placed)
	}
	if r.err != nil {
		return
	}
	id := northwindID("order", number)
	status, payment, fulfillment, paid := "PROCESSING", "UNPAID", "UNFULFILLED", value.Amount(0)
	var shipments []jsontext.Value
	if shipped != nil {
		status, payment, fulfillment, paid = "COMPLETED", "PAID", "SHIPPED", total
		shipments = []jsontext.Value{lines.ship(id, *shipped, shipper(r.get("shipVia")))}
	}
	requiredDate, _, _ := strings.Cut(r.get("requiredDate"), " ")
	db.orders = append(db.orders, put(commerce.KindOrder, r.place(), object(
		"id", id, "orderNumber", number, "externalRef", number, "source", "IMPORT",
		"status", status, "paymentStatus", payment, "fulfillmentStatus", fulfillment, "currency", "USD",
		"customerId", customer.id, "customerName", customer.company, "billingAddress", customer.address,
		"shippingAddress", object(
			"id", value.DeriveID(id, "shippingAddress"), "company", r.text("shipName"), "line1", r.text("shipAddress"),
			"city", r.text("shipCity"), "state", r.text("shipRegion"), "postalCode", r.text("shipPostalCode"), "country", country,
		),
		"items", lines.items(), "shipments", shipments, "shippingTotal", freight, "paidTotal", paid,
		"metadata", present(map[string]string{
			"employee": r.get("employeeID"), "requiredDate": requiredDate, "shipVia": r.get("shipVia"),
		}),
		"placedAt", placed, "fulfilledAt", shipped, "completedAt", shipped, "createdAt", placed,
	)))
}

// total is what the service derives from the same fields: the lines less
// their discounts, and the freight.
func (o *orderLines) total(freight value.Amount) (sum value.Amount, ok bool) {
	sum, ok = freight, true
	for _, l := range o.lines {
		if sum, ok = sum.Add(l.gross - l.discount); !ok {
			break
		}
	}
	return sum, ok
}

// ship makes the shipment that holds every line.
func (o *orderLines) ship(order value.ID, at value.Time, carrier *string) jsontext.Value {
	var items []jsontext.Value
	for i := range o.lines {
		l := &o.lines[i]
		l.fulfilled = l.quantity
		items = append(items, object("itemId", l.id, "quantity", l.quantity))
	}
	return object("id", value.DeriveID(order, "shipment"), "carrier", carrier, "items", items, "shippedAt", at)
}

func (o *orderLines) items() []jsontext.Value {
	items := []jsontext.Value{}
	for _, l := range o.lines {
		items = append(items, object(
			"id", l.id, "productId", northwindID("product", l.product), "name", l.name, "unit", "PIECE", "quantity", l.quantity,
			"unitPrice", l.unitPrice, "discountAmount", l.discount, "fulfilledQuantity", l.fulfilled,
		))
	}
	return items
}

// shipper names the three rows of Northwind's table of shippers.
func shipper(key string) *string {
	return orNil(map[string]string{"1": "Speedy Express", "2": "United Package", "3": "Federal Shipping"}[key])
}

// add counts an order of the customer.
func (c *northwindCustomer) add(r *dumpRow, total value.Amount, at value.Time) {
	spent, ok := c.spent.Add(total)
	if !ok {
		r.reject("total", "takes the customer's totalSpent out of range")
		return
	}
	c.spent = spent
	c.orders++
	if c.last == nil || at > *c.last {
		c.last = &at
	}
}
