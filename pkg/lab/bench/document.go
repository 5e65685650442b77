package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/value"
)

// stored is the n-th product as the table holds it.
func (c *catalogue) stored(n int, revision value.Time) (*commerce.Stored, error) {
	product := c.product(n)
	doc, err := json.Marshal(product)
	if err != nil {
		return nil, fmt.Errorf("encode product %d: %w", n, err)
	}
	return &commerce.Stored{
		Kind: commerce.KindProduct, ID: product.ID, OrganizationID: c.organization, Doc: doc, Revision: revision,
	}, nil
}

// document is what the index knows of the n-th product.
func (c *catalogue) document(n int, revision value.Time) (columnar.Document, error) {
	stored, err := c.stored(n, revision)
	if err != nil {
		return columnar.Document{}, err
	}
	return commerce.Document(stored, revision)
}

// segment is the index of the first products, encoded.
func (c *catalogue) segment(products int) (segment.Encoded, error) {
	documents := make([]columnar.Document, products)
	for n := range documents {
		var err error
		if documents[n], err = c.document(n, firstCreated+value.Time(n)*60_000); err != nil {
			return segment.Encoded{}, err
		}
	}
	return segment.Encode(commerce.ListOf(commerce.KindProduct).Schema, documents), nil
}

const (
	firstNames = "Anna Bruno Carla David Elena Felix Greta Hugo Inês Jonas Klara Luís María Noah Olga Pedro"
	lastNames  = "Almeida Becker Costa Dubois Eriksson Fischer García Hansen Ivanova Jansen Kowalski López Müller Novák Oliveira Petrov Rossi Schmidt Tanaka Weber"
)

// orders makes documents of orders spread evenly over a time, the last just
// before its end. A customer has eight.
type orders struct {
	count      int
	begin, end value.Time

	schema      *columnar.Schema
	first, last []string
}

func newOrders(count int, begin, end value.Time) *orders {
	return &orders{
		count: count, begin: begin, end: end, schema: commerce.ListOf(commerce.KindOrder).Schema,
		first: strings.Fields(firstNames), last: strings.Fields(lastNames),
	}
}

// document is the n-th order, changed the given time after it was placed.
func (o *orders) document(n int, changed value.Time) columnar.Document {
	r := rand.New(rand.NewPCG(uint64(n), 11)) //nolint:gosec // not secret, and the same on every run
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	placed := o.begin + value.Time(int64(n)*int64(o.end-o.begin)/int64(o.count))
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(placed)<<16|0x7000|r.Uint64N(1<<12)) //nolint:gosec // after 1970
	binary.BigEndian.PutUint64(id[8:], uint64(n)*0x9e3779b97f4a7c15>>2|1<<63)     //nolint:gosec // not negative
	customer := r.IntN(max(1, o.count/8))
	name := o.first[customer%len(o.first)] + " " + o.last[customer/len(o.first)%len(o.last)]
	b, col := o.schema.Build(id, 0), o.schema.Col
	b.Keyword(col("siteId"), reference('s', r.IntN(5))).Keyword(col("customerId"), reference('c', customer))
	b.Keyword(col("status"), pick("PENDING", "CONFIRMED", "PROCESSING", "COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED", "CANCELLED"))
	b.Keyword(col("paymentStatus"), pick("UNPAID", "PAID", "PAID", "PAID", "REFUNDED"))
	b.Keyword(col("fulfillmentStatus"), pick("UNFULFILLED", "SHIPPED", "DELIVERED", "DELIVERED"))
	b.Keyword(col("currency"), pick("EUR", "EUR", "EUR", "USD", "GBP"))
	b.Text(col("orderNumber"), fmt.Sprintf("SO-%07d", n)).Text(col("customerName"), name)
	b.Text(col("customerEmail"), strings.ReplaceAll(name, " ", ".")+strconv.Itoa(customer)+"@example.com")
	b.Text(col("externalRef"), "shop-"+strconv.Itoa(1_000_000+n*3))
	b.Number(col("total"), int64(r.ExpFloat64()*90)*value.AmountScale)
	b.Time(col("placedAt"), int64(placed)).Time(col("createdAt"), int64(placed)).Time(col("updatedAt"), int64(placed+changed))
	return b.Document(int64(placed+changed), int64(placed+changed))
}

// reference is the id of something that documents refer to.
func reference(kind byte, n int) string {
	var id [16]byte
	id[0] = kind
	binary.BigEndian.PutUint64(id[8:], uint64(n)*0x9e3779b97f4a7c15) //nolint:gosec // not negative
	return string(id[:])
}
