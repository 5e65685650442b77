package bench

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/value"
)

// measureIndex is the section of the index in memory.
func measureIndex(_ context.Context, b *bench) error {
	if err := b.measureProducts(); err != nil {
		return err
	}
	return b.measureOrders()
}

// decoded opens an encoded segment with everything in it.
func decoded(schema *columnar.Schema, e segment.Encoded) (*segment.Segment, error) {
	decoded, err := segment.Decode(schema, e.Groups[columnar.Core])
	if err != nil {
		return nil, fmt.Errorf("decode a segment: %w", err)
	}
	for group := columnar.SearchText; group < columnar.NumColumnGroups; group++ {
		if !schema.ColumnGroups().Has(group) {
			continue
		}
		if err := decoded.Decode(group, e.Groups[group]); err != nil {
			return nil, fmt.Errorf("decode a segment: %w", err)
		}
	}
	return decoded, nil
}

// loadedView is a view of encoded segments, from their bytes.
func loadedView(schema *columnar.Schema, all ...segment.Encoded) (*columnar.View, error) {
	view := columnar.NewView(schema)
	segments := make([]*segment.Segment, len(all))
	for i, e := range all {
		var err error
		if segments[i], err = decoded(schema, e); err != nil {
			return nil, err
		}
	}
	segment.Load(view, segments...)
	return view, nil
}

// measureProducts measures what a list of products takes in memory and time.
func (b *bench) measureProducts() error {
	shop := &catalogue{organization: value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")}
	schema := commerce.ListOf(commerce.KindProduct).Schema
	e, err := shop.segment(b.cfg.Products)
	if err != nil {
		return err
	}
	t := b.table(thousands(b.cfg.Products)+" products in the index", "measured", "allocations", "finds")
	t.note = fmt.Sprintf("Products of about 1 KB of JSON, as the table's records give them. Times are the best of %d rounds. "+
		"What is searched for changes from one query to the next.", microRounds)
	size := 0
	for _, group := range e.Groups {
		size += len(group)
	}
	t.add("encoded, search text included", "≤ 80 B per document", fmt.Sprintf("%.1f B per document", float64(size)/float64(e.Rows)), "", "")

	var view *columnar.View
	cold := busy(func() { view, err = loadedView(schema, e) })
	if err != nil {
		return err
	}
	t.add("cold load, from encoded bytes into a view", "≤ 60 ms CPU", milliseconds(cold)+" CPU", "", "")
	view = nil
	before := heap()
	if view, err = loadedView(schema, e); err != nil {
		return err
	}
	if err := b.measureQueries(t, view); err != nil {
		return err
	}
	t.add("memory of the view, after these queries", "≤ 40 MB", fmt.Sprintf("%s; on the heap %s", megabytes(view.Bytes()), megabytes(heap()-before)), "", "")
	runtime.KeepAlive(e)
	return b.measureChanges(t, shop, view)
}

// query is a query of the products list as the API would make it.
func query(kind commerce.Kind, parameters string) (columnar.Query, error) {
	values, err := url.ParseQuery(parameters)
	if err != nil {
		return columnar.Query{}, err
	}
	q, err := commerce.ListOf(kind).Parse(values)
	if err != nil {
		return columnar.Query{}, fmt.Errorf("%s: %w", parameters, err)
	}
	return commerce.IndexQuery(kind, q, commerce.SiteScope{}, nil, value.TimeOf(time.Now()))
}

// measureQueries measures queries of a view that has answered such ones
// before. A chunk of a view remembers its last searches, so that none of those
// here is asked again before many others were.
func (b *bench) measureQueries(t *table, view *columnar.View) error {
	const filters = "type=PHYSICAL&isActive=true&trackInventory=true"
	const ordered = "&orderBy=sellingPrice&" + filters
	var rare, common, three []string
	for i := range 200 {
		rare = append(rare, fmt.Sprintf("%06d", i*b.cfg.Products/200))
	}
	common = parts("collection")
	for i := range 300 {
		three = append(three, nth(things, i)[1:]+" "+nth(materials, i)[:3]+" "+common[i%len(common)])
	}
	for _, row := range []struct {
		about, target string
		searches      []string
		parameters    string
		last          bool
	}{
		{"keyword filters and order, page 1", "≤ 100 µs, ≤ 20 allocations", nil, filters + "&orderBy=name", false},
		{"keyword filters and order, the last page", "≤ 100 µs, ≤ 20 allocations", nil, filters + "&orderBy=name", true},
		{"search for a token of few products", "≤ 1 ms", rare, "", false},
		{"… with filters, order and total", "≤ 1 ms", rare, ordered, false},
		{"search for a token that all have", "≤ 4 ms", common, "", false},
		{"… with filters, order and total", "≤ 4 ms", common, ordered, false},
		{"search for three tokens", "≤ 4 ms", three, "", false},
		{"… with filters, order and total", "≤ 4 ms", three, ordered, false},
	} {
		queries, err := queriesOf(commerce.KindProduct, row.searches, row.parameters)
		if err != nil {
			return err
		}
		if row.last {
			total := view.Query(queries[0]).Total
			queries[0].Offset = max(0, (total-1)/queries[0].Limit*queries[0].Limit)
		}
		b.measureQuery(t, view, row.about, row.target, queries)
	}
	return nil
}

// parts are the pieces of a word of two letters and more.
func parts(word string) (all []string) {
	for from := range word {
		for to := from + 2; to <= len(word); to++ {
			all = append(all, word[from:to])
		}
	}
	return all
}

// nth is one of the words, in turn.
func nth(words string, n int) string {
	all := strings.Fields(words)
	return all[n%len(all)]
}

// queriesOf are the queries with one search after the other, or the one
// without a search.
func queriesOf(kind commerce.Kind, searches []string, parameters string) (queries []columnar.Query, err error) {
	if len(searches) == 0 {
		q, err := query(kind, parameters)
		return []columnar.Query{q}, err
	}
	for _, search := range searches {
		q, err := query(kind, "search="+url.QueryEscape(search)+parameters)
		if err != nil {
			return nil, err
		}
		queries = append(queries, q)
	}
	return queries, nil
}

// measureQuery measures queries asked in turn.
func (b *bench) measureQuery(t *table, view *columnar.View, about, target string, queries []columnar.Query) {
	total := 0
	for _, q := range queries {
		total += view.Query(q).Total
	}
	next := 0
	took := b.timed(func() {
		view.Query(queries[next%len(queries)])
		next++
	})
	found := thousands(total / len(queries))
	if len(queries) > 1 {
		found += fmt.Sprintf(" on average of %d", len(queries))
	}
	t.add(about, target, milliseconds(took.wall), fmt.Sprintf("%.0f", took.allocs), found)
}

// changeBatch is how many documents are changed at a time.
const changeBatch = 100

// measureChanges measures changes of a view that has answered queries.
func (b *bench) measureChanges(t *table, shop *catalogue, view *columnar.View) error {
	took := time.Duration(1<<63 - 1)
	for round := range 20 * microRounds {
		var batch []columnar.Document
		for i := range changeBatch {
			d, err := shop.document((round*7919+i*104_729)%b.cfg.Products, value.TimeOf(time.Now())+value.Time(round))
			if err != nil {
				return err
			}
			batch = append(batch, d)
		}
		started := time.Now()
		view.Apply(batch)
		took = min(took, time.Since(started))
	}
	t.add(fmt.Sprintf("applying a change of %d documents", changeBatch), "≤ 3 ms", milliseconds(took), "", "")
	return nil
}

// measureOrders measures a list that is divided into months.
func (b *bench) measureOrders() error {
	const months = 24
	end := value.TimeOf(time.Now())
	all := newOrders(b.cfg.Orders, end.Add(-months*30*24*time.Hour), end)
	encoded := make([]segment.Encoded, months)
	for m := range encoded {
		documents := make([]columnar.Document, 0, all.count/months+1)
		for n := m * all.count / months; n < (m+1)*all.count/months; n++ {
			documents = append(documents, all.document(n, 0))
		}
		encoded[m] = segment.Encode(all.schema, documents)
	}
	before := heap()
	view, err := loadedView(all.schema, encoded...)
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("%s orders of %d months, all loaded", thousands(all.count), months), "measured", "allocations", "finds")
	var numbers, names []string
	for i := range 200 {
		numbers = append(numbers, fmt.Sprintf("so-%07d", i*all.count/200))
	}
	for i := range 300 {
		names = append(names, nth(firstNames, i)+" "+nth(lastNames, i))
	}
	for _, row := range []struct {
		about      string
		searches   []string
		parameters string
	}{
		{"default list", nil, ""},
		{"status and payment status, by total", nil, "status=PENDING,CONFIRMED&paymentStatus=PAID&orderBy=total"},
		{"currency, by order number, page 1,000", nil, "currency=EUR&orderBy=orderNumber&page=1000"},
		{"placed within a month", nil, "placedFrom=" + end.Add(-90*24*time.Hour).String() + "&placedTo=" + end.Add(-60*24*time.Hour).String()},
		{"search for one order", numbers, ""},
		{"search for a customer's name, with a status", names, "&status=COMPLETED"},
	} {
		queries, err := queriesOf(commerce.KindOrder, row.searches, row.parameters)
		if err != nil {
			return err
		}
		b.measureQuery(t, view, row.about, "≤ 10 ms", queries)
	}
	t.add("memory of the view, after these queries", "≤ 200 MB", fmt.Sprintf("%s; on the heap %s", megabytes(view.Bytes()), megabytes(heap()-before)), "", "")
	runtime.KeepAlive(view)
	return nil
}
