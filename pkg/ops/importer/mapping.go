package importer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json/jsontext"
)

// Mapping says what the columns of a CSV file are. Columns that it does not name
// are not imported.
type Mapping struct {
	Kind commerce.Kind `json:"kind"`
	// Columns gives each column the field that it is, written as a header of the
	// format csv: sku, attributes.colour, items[0].quantity. Of a product two
	// more can be named: category, a path such as Cups > Mugs, whose categories
	// are imported, too, and brand, a name that the brandId is derived from.
	Columns map[string]string `json:"columns"`
	// Constants are fields that have one value in all records.
	Constants map[string]jsontext.Value `json:"constants,omitzero"`
	// IDFrom is the column that identifiers are derived from.
	IDFrom string `json:"idFrom,omitzero"`
	// Separator is between the fields of a row; empty is told by the header.
	Separator string `json:"separator,omitzero"`
	// DecimalComma says that amounts are written as 1.299,90.
	DecimalComma bool `json:"decimalComma,omitzero"`
}

// The fields of a product that a mapping knows beside those of the shape.
const (
	mappedCategory = "category"
	mappedBrand    = "brand"
)

// ParseMapping reads the JSON text of a mapping and checks it.
func ParseMapping(text []byte) (*Mapping, error) {
	m := &Mapping{}
	if err := strictjson.Unmarshal(text, m); err != nil {
		bad := reject(Place{}, err)
		return nil, errors.New(strings.TrimPrefix(bad.Field+" "+bad.Message, " "))
	}
	if m.Kind == "" {
		return nil, errors.New("kind is required")
	}
	if len(m.Columns) == 0 {
		return nil, errors.New("columns is required: the field of each column, such as {\"Price\": \"sellingPrice\"}")
	}
	if utf8.RuneCountInString(m.Separator) > 1 {
		return nil, errors.New("separator must be one character")
	}
	for _, column := range slices.Sorted(maps.Keys(m.Columns)) {
		field := m.Columns[column]
		if m.special(field) {
			continue
		}
		if _, err := planColumn(shapeOf(m.Kind), field); err != nil {
			return nil, fmt.Errorf("column %q: %w", column, err)
		}
	}
	_, err := m.constants()
	return m, err
}

// constants returns the fields of one value, in the order of their names.
func (m *Mapping) constants() (columns []column, err error) {
	for _, field := range slices.Sorted(maps.Keys(m.Constants)) {
		c, err := planColumn(shapeOf(m.Kind), field)
		if err == nil && c.path == nil {
			err = errors.New("can only be a column")
		}
		if err != nil {
			return nil, fmt.Errorf("constant %q: %w", field, err)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func shapeOf(kind commerce.Kind) reflect.Type { return reflect.TypeOf(commerce.New(kind)).Elem() }

func (m *Mapping) special(field string) bool {
	return m.Kind == commerce.KindProduct && (field == mappedCategory || field == mappedBrand)
}

func (m *Mapping) separator() rune {
	if m.Separator == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(m.Separator)
	return r
}

// plan finds what each column of a header is.
func (m *Mapping) plan(name string, header []string, kind commerce.Kind) (columns []column, err error) {
	for i, text := range header {
		field := text
		if m.Columns != nil {
			if field = m.Columns[text]; field == "" {
				continue
			}
		}
		if m.Columns == nil && text == RefusedColumn {
			continue
		}
		c := column{name: text, path: []string{field}}
		if !m.special(field) {
			if c, err = planColumn(shapeOf(kind), field); err != nil {
				return nil, fmt.Errorf("read %s: column %q: %w", name, text, err)
			}
		}
		c.at = i
		columns = append(columns, c)
	}
	for _, text := range slices.Sorted(maps.Keys(m.Columns)) {
		if !slices.Contains(header, text) {
			return nil, fmt.Errorf("read %s: column %q of the mapping is missing; the columns are %s", name, text, strings.Join(header, ", "))
		}
	}
	return columns, nil
}

// idColumn returns where the column is that identifiers are derived from, named
// as in the header or by its field; -1 when a column has the identifiers.
func (s *Source) idColumn(sh *sheet, columns []column) (int, error) {
	from := s.IDFrom
	if from == "" && s.Mapping != nil {
		from = s.Mapping.IDFrom
	}
	has := slices.ContainsFunc(columns, func(c column) bool { return slices.Equal(c.path, []string{"id"}) })
	switch {
	case from == "" && has:
		return -1, nil
	case from == "":
		return 0, fmt.Errorf("read %s: no column is the id; name one to derive it from, such as sku. The columns are %s",
			sh.name, strings.Join(sh.header, ", "))
	case has:
		return 0, fmt.Errorf("read %s: a column has the id already; leave out the one to derive it from", sh.name)
	}
	for _, c := range columns {
		if c.name == from || strings.Join(c.path, ".") == from {
			return c.at, nil
		}
	}
	if i := slices.Index(sh.header, from); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("read %s: column %q, to derive the id from, is missing; the columns are %s", sh.name, from, strings.Join(sh.header, ", "))
}

// setCell puts a cell where its column says.
func (t *table) setCell(record *Record, body *node, c column, cell string) error {
	if c.form == nil {
		return t.setSpecial(body, c, cell)
	}
	if t.decimalComma && formOf(c.form) == formNumber {
		cell = withPoint(cell)
	}
	v, err := cellValue(c.form, cell)
	switch {
	case err != nil:
	case c.path == nil:
		err = record.setEnvelope(c.name, v)
	default:
		err = body.set(c.path, v)
	}
	return t.inColumn(c, err)
}

// inColumn turns an error into a rejection that names the column.
func (t *table) inColumn(c column, err error) error {
	if err == nil {
		return nil
	}
	bad := reject(t.place(), err)
	bad.Field = t.header[c.at]
	return bad
}

func (t *table) setSpecial(body *node, c column, cell string) error {
	if c.path[0] == mappedBrand {
		if err := body.set([]string{"attributes", "vendor"}, encode(cell)); err != nil {
			return t.inColumn(c, err)
		}
		return t.inColumn(c, body.set([]string{"brandId"}, encode(brandID(cell))))
	}
	path := categoryPath(cell)
	if path == "" {
		return nil
	}
	if err := t.source.emitCategory(path, t.place(), t.emit); err != nil {
		return err
	}
	return t.inColumn(c, body.set([]string{"categoryId"}, encode(categoryID(path))))
}

// complete adds the identifier and the constants, which a cell of the row
// overrides.
func (t *table) complete(body *node) error {
	if t.idColumn >= 0 {
		key := t.cell(t.idColumn)
		if key == "" {
			return rejectField(t.place(), t.header[t.idColumn], "is required: the id is derived from it")
		}
		id := value.DeriveID(namespace, "csv/"+string(t.source.Kind)+"/"+key)
		if err := body.set([]string{"id"}, encode(id)); err != nil {
			return reject(t.place(), err)
		}
	}
	for _, c := range t.constants {
		if err := body.set(c.path, t.source.Mapping.Constants[c.name]); err != nil && !errors.Is(err, errOverlap) {
			return reject(t.place(), err)
		}
	}
	return nil
}
