package importer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// layout says where the product CSV of a shop system has what. Columns are
// written as [sheet.positions] takes them; %d stands for 1, 2, 3 and so on.
type layout struct {
	prefix string // of what identifiers are derived from
	key    string // of a product: consecutive rows with one key are of one product
	id     string // of a variant; without it, key and options identify it
	title  string
	// continues says that a row without a key belongs to the product above.
	continues bool

	names, values     string // of the options: one a column, or a list with bars in one
	images, ownImages string // of the product, and of a variant
	imageSeparator    string // in a cell; empty when it has one image
	shared, own       []field
	// sharedAttributes and ownAttributes name the column of each attribute.
	sharedAttributes, ownAttributes map[string]string

	active     func(*sheet) bool
	categories func(*sheet) []string // paths such as Clothing > Shirts, the main one first
	brand      func(*sheet) string
	price      func(*Source, *sheet) (string, error) // the column of the price
	// salePrice is asked instead of the price, which is an attribute then, unless
	// saleBegins says that it will be.
	salePrice, saleBegins string
	// part says what a row is, for a format whose variants have rows anywhere
	// below their product's.
	part func(*sheet) (kind rowPart, parent string)
}

// field is a field of a product and the columns that it is read from.
type field struct {
	name, columns string
	read          func(*sheet, string) any // nil leaves the field out
}

type rowPart int

const (
	wholeProduct    rowPart = iota
	variableProduct         // has what its variants share
	variantRow
)

// catalogue reads the products of one file.
type catalogue struct {
	*sheet
	*layout
	source  *Source
	emit    emitter
	price   string
	parents map[string]*listing
	order   []*listing // the parents as they came
}

// listing is one product of a shop: what its variants share, and the variants.
type listing struct {
	key, title string
	options    []string // names of the options
	images     []string
	attributes map[string]any
	categories []string
	place      Place
	shared     map[string]any
	variants   []variant
	sold       bool // has variants of its own
}

type variant struct {
	place  Place
	images []string
	fields map[string]any
}

// read emits one product per variant, and each category before its first product.
func (l *layout) read(source *Source, sh *sheet, emit emitter) (err error) {
	c := &catalogue{sheet: sh, layout: l, source: source, emit: emit, parents: map[string]*listing{}}
	if c.price, err = l.price(source, sh); err != nil {
		return err
	}
	var open *listing
	err = sh.each(emit, func() {
		if l.part != nil {
			c.separateRow()
			return
		}
		key := sh.get(l.key)
		if open == nil || key != open.key && (key != "" || !l.continues) {
			if sh.err = c.finish(open); sh.err != nil {
				return
			}
			open = c.newListing()
			c.add(open)
			return
		}
		c.join(open.place)
		open.images = append(open.images, c.cells(l.images)...)
		if strings.Join(c.series(l.values), "") != "" || sh.get(c.price) != "" || sh.get("Variant SKU|SKU") != "" {
			c.add(open)
		}
	})
	if err != nil {
		return err
	}
	for _, parent := range c.order {
		if parent.sold {
			continue
		}
		if err := c.finish(parent); err != nil {
			return err
		}
	}
	return c.finish(open)
}

// separateRow reads a row of a format whose variants are found by their parent.
// A parent without variants is a product itself.
func (c *catalogue) separateRow() {
	kind, parent := c.part(c.sheet)
	if kind != variantRow {
		l := c.newListing()
		c.add(l)
		if kind == wholeProduct && c.err == nil {
			c.err = c.finish(l)
		}
		if kind == variableProduct && c.err == nil {
			c.order = append(c.order, l)
			c.parents[c.get("SKU")] = l
			c.parents["id:"+c.get("ID")] = l
		}
		return
	}
	above := c.parents[parent]
	if parent == "" || above == nil {
		c.reject("Parent", "%q is not a variable product above this row", parent)
		return
	}
	c.join(above.place)
	above.sold = true
	one := *above
	one.variants = nil
	c.add(&one)
	if c.err == nil {
		c.err = c.finish(&one)
	}
}

func (c *catalogue) newListing() *listing {
	l := &listing{
		key: c.get(c.layout.key), title: c.get(c.title), options: c.series(c.names),
		images: c.cells(c.images), attributes: map[string]any{}, categories: c.categories(c.sheet), place: c.place(),
		shared: map[string]any{"unit": "PIECE", "isActive": c.active(c.sheet)},
	}
	c.fill(l.shared, c.layout.shared)
	for name, columns := range c.sharedAttributes {
		set(l.attributes, name, c.maybe(columns))
	}
	if len(l.categories) > 0 {
		l.shared["categoryId"] = categoryID(l.categories[0])
		if len(l.categories) > 1 {
			l.attributes["categories"] = l.categories
		}
	}
	if brand := c.brand(c.sheet); brand != "" {
		l.attributes["vendor"] = brand
		l.shared["brandId"] = brandID(brand)
	}
	return l
}

func (c *catalogue) fill(into map[string]any, fields []field) {
	for _, f := range fields {
		if v := f.read(c.sheet, f.columns); v != nil {
			into[f.name] = v
		}
	}
}

// set leaves out a nil text.
func set(into map[string]any, name string, text *string) {
	if text != nil {
		into[name] = *text
	}
}

// series returns the cells of numbered columns, or the texts between the bars of
// one column, empty ones included.
func (s *sheet) series(columns string) (cells []string) {
	if !strings.Contains(columns, "%d") {
		for text := range strings.SplitSeq(s.get(columns), "|") {
			cells = append(cells, strings.TrimSpace(text))
		}
		return cells
	}
	for n := 1; ; n++ {
		numbered := strings.ReplaceAll(columns, "%d", strconv.Itoa(n))
		if len(s.positions(numbered)) == 0 {
			return cells
		}
		cells = append(cells, s.get(numbered))
	}
}

// cells returns the texts of image columns.
func (c *catalogue) cells(columns string) (texts []string) {
	if columns == "" {
		return nil
	}
	for spec := range strings.SplitSeq(columns, ";") {
		for _, cell := range c.series(spec) {
			if c.imageSeparator != "" {
				texts = append(texts, splitList(cell, c.imageSeparator)...)
			} else if cell != "" {
				texts = append(texts, cell)
			}
		}
	}
	return texts
}

// add adds the row's variant to the listing.
func (c *catalogue) add(l *listing) {
	if l.key == "" && c.id == "" {
		c.reject(c.layout.key, "is required")
	}
	id, name, options := c.describe(l)
	attributes := maps.Clone(l.attributes)
	for member, columns := range c.ownAttributes {
		set(attributes, member, c.maybe(columns))
	}
	if len(options) > 0 {
		attributes["options"] = options
	}
	fields := map[string]any{"id": id, "name": name, "attributes": attributes}
	column := c.price
	if c.get(c.salePrice) != "" && c.get(c.saleBegins) == "" {
		set(attributes, "compareAtPrice", c.maybe(c.price))
		column = c.salePrice
	}
	if price := c.amount(column); price != nil {
		fields["sellingPrice"] = price
	}
	c.fill(fields, c.own)
	if c.err == nil {
		l.variants = append(l.variants, variant{c.place(), c.cells(c.ownImages), fields})
	}
}

// describe gives the variant its identifier, name and options. An identifier of
// key and options' values outlives a new order of the rows, a renamed title and
// a changed price.
func (c *catalogue) describe(l *listing) (id value.ID, name string, options map[string]any) {
	key, options := c.prefix+l.key, map[string]any{}
	name = l.title
	for i, chosen := range c.series(c.values) {
		if i >= len(l.options) || chosen == "" || l.options[i] == "Title" && chosen == "Default Title" {
			continue
		}
		key += "\x1f" + chosen
		name += " - " + chosen
		if l.options[i] != "" {
			options[l.options[i]] = chosen
		}
	}
	if c.id != "" {
		if key = c.get(c.id); key == "" {
			c.reject(c.id, "is required")
		}
		key = c.prefix + key
		if name = c.get(c.title); name == "" {
			name = l.title
		}
	}
	return value.DeriveID(namespace, key), name, options
}

// finish emits the categories and the variants of a listing. A variant's images
// come before the listing's.
func (c *catalogue) finish(l *listing) error {
	if l == nil || len(l.variants) == 0 {
		return nil
	}
	for _, path := range l.categories {
		if err := c.source.emitCategory(path, l.place, c.emit); err != nil {
			return err
		}
	}
	for _, v := range l.variants {
		record := maps.Clone(l.shared)
		maps.Copy(record, v.fields)
		images := []string{}
		for _, image := range slices.Concat(v.images, l.images) {
			if !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
		record["images"] = images
		if err := c.emit(put(commerce.KindProduct, v.place, encode(record)), nil); err != nil {
			return err
		}
	}
	return nil
}

const pathSeparator = " > "

// categoryPath writes a path with one blank around each separator.
func categoryPath(cell string) string {
	return strings.Join(splitPath(cell), pathSeparator)
}

func splitPath(cell string) (names []string) {
	for name := range strings.SplitSeq(cell, ">") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// categoryID and brandID derive from names alone, so that files of several
// systems agree on them.
func categoryID(path string) value.ID { return value.DeriveID(namespace, "category/"+path) }
func brandID(name string) value.ID    { return value.DeriveID(namespace, "brand/"+name) }

// emitCategory emits the categories of a path that this pass has not emitted
// yet, from the top.
func (s *Source) emitCategory(path string, place Place, emit emitter) error {
	var above any
	names := splitPath(path)
	for i, name := range names {
		id := categoryID(strings.Join(names[:i+1], pathSeparator))
		if !s.categories[id] {
			s.categories[id] = true
			category := put(commerce.KindCategory, place, object("id", id, "name", name, "parentId", above))
			if err := emit(category, nil); err != nil {
				return err
			}
		}
		above = id
	}
	return nil
}

// splitList divides a cell, trims the texts and drops empty and repeated ones.
func splitList(cell, separator string) []string {
	texts := []string{}
	for text := range strings.SplitSeq(cell, separator) {
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
