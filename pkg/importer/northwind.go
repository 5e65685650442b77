package importer

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// The files of the Northwind directory, in the order in which they are read.
const (
	categoriesFile = iota
	productsFile
	customersFile
	ordersFile
	detailsFile
)

func northwindFiles(dir string) []string {
	return []string{
		categoriesFile: filepath.Join(dir, "categories.csv"),
		productsFile:   filepath.Join(dir, "products.csv"),
		customersFile:  filepath.Join(dir, "customers.csv"),
		ordersFile:     filepath.Join(dir, "orders.csv"),
		detailsFile:    filepath.Join(dir, "order_details.csv"),
	}
}

// traders is the Northwind database while it is read. It is a few thousand
// rows, and a customer needs the sums of all orders, so it is held whole.
type traders struct {
	records  []Record
	bad      []*Rejection
	products map[string]string // id to name
	buyers   map[string]*buyer
	order    []string // customer codes as the file has them
	items    map[string]*basket
}

// buyer is a customer with what the orders say of it.
type buyer struct {
	record customer
	place  Place
}

// basket is the lines of one order.
type basket struct {
	items []orderItem
	bad   *Rejection
}

// northwind yields categories, products, customers and orders, so that what
// is referred to comes first.
func (s *Source) northwind(yield func(Record, error) bool) {
	t := &traders{products: map[string]string{}, buyers: map[string]*buyer{}, items: map[string]*basket{}}
	if err := t.load(s); err != nil {
		yield(Record{}, err)
		return
	}
	for _, r := range t.bad {
		if !yield(Record{}, r) {
			return
		}
	}
	for _, r := range t.records {
		if !yield(r, nil) {
			return
		}
	}
}

func (t *traders) load(s *Source) error {
	var orders []Record
	steps := []struct {
		file    int
		columns []string
		row     func(*nulls) error
	}{
		{categoriesFile, []string{"categoryID", "categoryName", "description"}, t.category},
		{productsFile, []string{"productID", "productName", "categoryID", "unitPrice", "discontinued"}, t.product},
		{customersFile, []string{"customerID", "companyName", "contactName", "country"}, t.customer},
		{detailsFile, []string{"orderID", "productID", "unitPrice", "quantity", "discount"}, t.detail},
		{ordersFile, []string{"orderID", "customerID", "orderDate", "shippedDate", "freight"}, func(n *nulls) error {
			r, err := t.placeOrder(n)
			if err == nil {
				orders = append(orders, r)
			}
			return err
		}},
	}
	for _, step := range steps {
		if err := t.eachRow(s, step.file, step.columns, step.row); err != nil {
			return err
		}
	}
	for _, code := range t.order {
		b := t.buyers[code]
		t.add(put(commerce.KindCustomer, b.place, b.record))
	}
	t.records = append(t.records, orders...)
	return nil
}

func (t *traders) add(r Record, err error) {
	var bad *Rejection
	if errors.As(err, &bad) {
		t.bad = append(t.bad, bad)
		return
	}
	t.records = append(t.records, r)
}

func (t *traders) eachRow(s *Source, file int, columns []string, row func(*nulls) error) error {
	f, err := s.open(s.paths[file])
	if err != nil {
		return err
	}
	defer f.Close()
	sh, err := openSheet(filepath.Base(s.paths[file]), f, columns...)
	if err != nil {
		return err
	}
	for {
		err := sh.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = row(&nulls{sh})
		}
		var bad *Rejection
		switch {
		case errors.As(err, &bad):
			t.bad = append(t.bad, bad)
		case err != nil:
			return err
		}
	}
}

// nulls reads cells of a database dump, where NULL stands for no value.
type nulls struct{ *sheet }

func (n *nulls) get(column string) string {
	if cell := n.sheet.get(column); cell != "NULL" {
		return cell
	}
	return ""
}

func (n *nulls) text(column string) *string {
	cell := n.get(column)
	if cell == "" {
		return nil
	}
	return &cell
}

func (n *nulls) amount(column string) (value.Amount, error) {
	a, err := value.ParseAmount(n.get(column))
	if err != nil {
		return 0, rejectField(n.place(), column, "%s", err)
	}
	return a, nil
}

// amountOrNil is amount for a column that may hold no value.
func (n *nulls) amountOrNil(column string) (*value.Amount, error) {
	if n.get(column) == "" {
		return nil, nil
	}
	a, err := n.amount(column)
	return &a, err
}

// time reads 1996-07-04 00:00:00.000, which the dump means in UTC.
func (n *nulls) time(column string) (*value.Time, error) {
	cell := n.get(column)
	if cell == "" {
		return nil, nil
	}
	t, err := time.Parse("2006-01-02 15:04:05.000", cell)
	if err != nil {
		return nil, rejectField(n.place(), column, "must be a time such as 1996-07-04 00:00:00.000")
	}
	at := value.TimeOf(t)
	return &at, nil
}

// discount reads the column that Northwind declares as a binary float of four
// bytes, so that a dump may say 0.15000001 or 0.15000000596046448 for 0.15.
// Such a text stands for the shortest decimal that is the same float.
func (n *nulls) discount(column string) (value.Amount, error) {
	cell := n.get(column)
	a, err := value.ParseAmount(cell)
	if err != nil {
		f, ferr := strconv.ParseFloat(cell, 32)
		if ferr != nil {
			return 0, rejectField(n.place(), column, "%s", err)
		}
		a, err = value.ParseAmount(strconv.FormatFloat(f, 'f', -1, 32))
	}
	if err != nil || a < 0 || a > value.AmountScale {
		return 0, rejectField(n.place(), column, "must be a fraction between 0 and 1 with at most 4 decimals")
	}
	return a, nil
}

func northwindID(kind, key string) value.ID {
	return value.DeriveID(namespace, "northwind/"+kind+"/"+key)
}

func (t *traders) category(n *nulls) error {
	id := n.get("categoryID")
	position, err := strconv.Atoi(id)
	if err != nil {
		return rejectField(n.place(), "categoryID", "must be a whole number")
	}
	t.add(put(commerce.KindCategory, n.place(), category{
		ID: northwindID("category", id), Name: n.get("categoryName"), Description: n.text("description"),
		IsActive: true, Order: position,
	}))
	return nil
}

func (t *traders) product(n *nulls) error {
	id := n.get("productID")
	price, err := n.amountOrNil("unitPrice")
	if err != nil {
		return err
	}
	reorder, err := n.amountOrNil("reorderLevel")
	if err != nil {
		return err
	}
	var parent *value.ID
	if key := n.get("categoryID"); key != "" {
		derived := northwindID("category", key)
		parent = &derived
	}
	t.products[id] = n.get("productName")
	t.add(put(commerce.KindProduct, n.place(), product{
		ID: northwindID("product", id), Name: n.get("productName"), Type: "PHYSICAL", CategoryID: parent, Unit: "PIECE",
		SellingPrice: price, IsActive: n.get("discontinued") == "0", TrackInventory: true, ReorderPoint: reorder,
		Attributes: present{
			"northwindProduct": id, "quantityPerUnit": n.get("quantityPerUnit"),
			"supplier": n.get("supplierID"), "unitsInStock": n.get("unitsInStock"), "unitsOnOrder": n.get("unitsOnOrder"),
		}.set(),
	}))
	return nil
}

func (t *traders) customer(n *nulls) error {
	code := n.get("customerID")
	if code == "" {
		return rejectField(n.place(), "customerID", "is required")
	}
	country, err := countryCode(n.place(), "country", n.get("country"))
	if err != nil {
		return err
	}
	first, last := splitName(n.get("contactName"))
	id := northwindID("customer", code)
	home := value.DeriveID(id, "address")
	t.order = append(t.order, code)
	t.buyers[code] = &buyer{place: n.place(), record: customer{
		ID: id, CustomerNumber: code, ExternalRef: code, Type: "BUSINESS", FirstName: first, LastName: last,
		CompanyName: n.text("companyName"), Phone: n.text("phone"), IsActive: true, Currency: "USD",
		Addresses: []address{{
			ID: home, FirstName: first, LastName: last, Company: n.text("companyName"), Line1: n.text("address"),
			City: n.text("city"), State: n.text("region"), PostalCode: n.text("postalCode"), Country: country, Phone: n.text("phone"),
		}},
		DefaultBillingAddressID: home, DefaultShippingAddressID: home,
		Metadata: present{"contactTitle": n.get("contactTitle"), "fax": n.get("fax")}.set(),
	}}
	return nil
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
	f, l := strings.Join(words[:cut], " "), strings.Join(words[cut:], " ")
	return &f, &l
}

// detail adds one line to its order. A bad line is the whole order's: an
// order short of a line would be wrong without anybody noticing.
func (t *traders) detail(n *nulls) error {
	order := n.get("orderID")
	b := t.items[order]
	if b == nil {
		b = &basket{}
		t.items[order] = b
	}
	item, err := t.item(n, order)
	var bad *Rejection
	if errors.As(err, &bad) {
		b.bad = bad
		return err
	}
	b.items = append(b.items, item)
	return nil
}

func (t *traders) item(n *nulls, order string) (orderItem, error) {
	key := n.get("productID")
	name, known := t.products[key]
	if !known {
		return orderItem{}, rejectField(n.place(), "productID", "%q is not in products.csv", key)
	}
	price, err := n.amount("unitPrice")
	if err != nil {
		return orderItem{}, err
	}
	quantity, err := n.amount("quantity")
	if err != nil {
		return orderItem{}, err
	}
	fraction, err := n.discount("discount")
	if err != nil {
		return orderItem{}, err
	}
	gross, exact := times(price, quantity)
	if !exact {
		return orderItem{}, rejectField(n.place(), "unitPrice", "times quantity has more than 4 decimals or is out of range")
	}
	discount, _ := gross.MulDiv(fraction, value.AmountScale)
	return orderItem{
		ID:        value.DeriveID(northwindID("order", order), "item/"+key),
		ProductID: northwindID("product", key), Name: name, Unit: "PIECE",
		Quantity: quantity, UnitPrice: price, DiscountAmount: discount, gross: gross,
	}, nil
}

// times multiplies; exact is false when four decimals cannot hold the
// product.
func times(a, b value.Amount) (product value.Amount, exact bool) {
	p := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
	q, rest := new(big.Int).QuoRem(p, big.NewInt(value.AmountScale), new(big.Int))
	if rest.Sign() != 0 || !q.IsInt64() || !value.Amount(q.Int64()).InRange() {
		return 0, false
	}
	return value.Amount(q.Int64()), true
}

// placeOrder makes the order. What the database does not record is not
// invented, with one exception: it has no payments, and a shipped order
// counts as completed and paid in full, an unshipped one as being processed
// and unpaid.
func (t *traders) placeOrder(n *nulls) (Record, error) {
	number := n.get("orderID")
	b := t.items[number]
	if b != nil && b.bad != nil {
		return Record{}, rejectField(n.place(), "items", "has a line that cannot be read (%s)", b.bad.Place)
	}
	by := t.buyers[n.get("customerID")]
	if by == nil {
		return Record{}, rejectField(n.place(), "customerID", "%q is not in customers.csv", n.get("customerID"))
	}
	o := order{
		ID: northwindID("order", number), OrderNumber: number, ExternalRef: number, Source: "IMPORT", Currency: "USD",
		Status: "PROCESSING", PaymentStatus: "UNPAID", FulfillmentStatus: "UNFULFILLED",
		CustomerID: by.record.ID, CustomerName: by.record.CompanyName,
	}
	if b != nil {
		o.Items = b.items
	}
	if err := o.read(n, by); err != nil {
		return Record{}, err
	}
	total, ok := o.total()
	if !ok {
		return Record{}, rejectField(n.place(), "total", "is out of range")
	}
	shipped, err := n.time("shippedDate")
	if err != nil {
		return Record{}, err
	}
	if shipped != nil {
		o.ship(*shipped, total, carrier(n.get("shipVia")))
	}
	if err := by.count(n.place(), total, o.PlacedAt); err != nil {
		return Record{}, err
	}
	return put(commerce.KindOrder, n.place(), o)
}

// read fills in what stands in the row itself.
func (o *order) read(n *nulls, by *buyer) error {
	placed, err := n.time("orderDate")
	if err != nil {
		return err
	}
	if placed == nil {
		return rejectField(n.place(), "orderDate", "is required")
	}
	freight, err := n.amount("freight")
	if err != nil {
		return err
	}
	country, err := countryCode(n.place(), "shipCountry", n.get("shipCountry"))
	if err != nil {
		return err
	}
	o.PlacedAt, o.CreatedAt, o.ShippingTotal = *placed, *placed, freight
	o.ShippingAddress = address{
		ID: value.DeriveID(o.ID, "shippingAddress"), Company: n.text("shipName"), Line1: n.text("shipAddress"),
		City: n.text("shipCity"), State: n.text("shipRegion"), PostalCode: n.text("shipPostalCode"), Country: country,
	}
	o.BillingAddress = by.record.Addresses[0]
	o.Metadata = present{"employee": n.get("employeeID"), "requiredDate": day(n.get("requiredDate")), "shipVia": n.get("shipVia")}.set()
	return nil
}

func day(timestamp string) string {
	date, _, _ := strings.Cut(timestamp, " ")
	return date
}

// total is what the service derives from the same fields: the items less
// their discounts, and the freight.
func (o *order) total() (value.Amount, bool) {
	sum := o.ShippingTotal
	for _, item := range o.Items {
		next, ok := sum.Add(item.gross - item.DiscountAmount)
		if !ok {
			return 0, false
		}
		sum = next
	}
	return sum, true
}

func (o *order) ship(at value.Time, total value.Amount, carrier *string) {
	o.Status, o.PaymentStatus, o.FulfillmentStatus = "COMPLETED", "PAID", "SHIPPED"
	o.PaidTotal, o.FulfilledAt, o.CompletedAt = total, &at, &at
	o.Items = slices.Clone(o.Items)
	s := shipment{ID: value.DeriveID(o.ID, "shipment"), Carrier: carrier, ShippedAt: at}
	for i := range o.Items {
		o.Items[i].FulfilledQuantity = o.Items[i].Quantity
		s.Items = append(s.Items, shippedItem{ItemID: o.Items[i].ID, Quantity: o.Items[i].Quantity})
	}
	o.Shipments = []shipment{s}
}

// carrier names the three rows of Northwind's table of shippers.
func carrier(key string) *string {
	names := map[string]string{"1": "Speedy Express", "2": "United Package", "3": "Federal Shipping"}
	name, ok := names[key]
	if !ok {
		return nil
	}
	return &name
}

func (b *buyer) count(place Place, total value.Amount, at value.Time) error {
	spent, ok := b.record.TotalSpent.Add(total)
	if !ok {
		return rejectField(place, "total", "takes the customer's totalSpent out of range")
	}
	b.record.TotalSpent = spent
	b.record.OrdersCount++
	if b.record.LastOrderAt == nil || at > *b.record.LastOrderAt {
		b.record.LastOrderAt = &at
	}
	return nil
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

// countryCode gives the ISO 3166-1 alpha-2 code of a country's name as
// Northwind writes it.
func countryCode(place Place, field, name string) (*string, error) {
	if name == "" {
		return nil, nil
	}
	code, ok := map[string]string{
		"Argentina": "AR", "Austria": "AT", "Belgium": "BE", "Brazil": "BR", "Canada": "CA", "Denmark": "DK",
		"Finland": "FI", "France": "FR", "Germany": "DE", "Ireland": "IE", "Italy": "IT", "Mexico": "MX",
		"Norway": "NO", "Poland": "PL", "Portugal": "PT", "Spain": "ES", "Sweden": "SE", "Switzerland": "CH",
		"UK": "GB", "USA": "US", "Venezuela": "VE",
	}[name]
	if !ok {
		return nil, &Rejection{Place: place, Reason: "validation_failed", Field: field, Message: fmt.Sprintf("%q is not a country of Northwind", name)}
	}
	return &code, nil
}
