package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Mapping says what the columns of a CSV file are. Columns that it does not name
// are not imported.
type Mapping struct {
	Kind commerce.Kind `json:"kind"`
	// Columns gives each column the field that it is, written as a header of the
	// format csv: sku, attributes.colour, items[0].quantity. Of a product three
	// more can be named: externalRef, category, a path such as Cups > Mugs, whose categories
	// are imported, too, and brand, a name that the brandId is derived from.
	Columns map[string]string `json:"columns"`
	// Constants are fields that have one value in all records.
	Constants map[string]jsontext.Value `json:"constants,omitzero"`
	// IDFrom is the column that identifiers are derived from.
	IDFrom string `json:"idFrom,omitzero"`
	// DecimalComma says that amounts are written as 1.299,90.
	DecimalComma bool `json:"decimalComma,omitzero"`
}

// ParseMapping reads the JSON text of a mapping and checks it.
func ParseMapping(text []byte) (*Mapping, error) {
	m := &Mapping{}
	if err := strictjson.Unmarshal(text, m); err != nil {
		bad := reject(Place{}, err)
		return nil, errors.New(strings.TrimPrefix(bad.Field+" "+bad.Message, " "))
	}
	switch {
	case m.Kind == "":
		return nil, errors.New("kind is required")
	case len(m.Columns) == 0:
		return nil, errors.New("columns is required: the field of each column, such as {\"Price\": \"sellingPrice\"}")
	}
	for _, column := range slices.Sorted(maps.Keys(m.Columns)) {
		if _, err := planColumn(m.Kind, m.Columns[column]); err != nil {
			return nil, fmt.Errorf("column %q: %w", column, err)
		}
	}
	_, err := m.constants(m.Kind)
	return m, err
}

// constants returns the paths of the fields of one value, and the values as JSON.
func (m *Mapping) constants(kind commerce.Kind) ([]any, error) {
	all := []any{}
	for _, field := range slices.Sorted(maps.Keys(m.Constants)) {
		c, err := planColumn(kind, field)
		if _, envelope := envelopeForms[field]; err == nil && (envelope || slices.Contains([]form{formCategory, formBrand, formReference}, c.form)) {
			err = errors.New("can only be a column")
		}
		if err != nil {
			return nil, fmt.Errorf("constant %q: %w", field, err)
		}
		all = append(all, map[string]any{"path": c.path, "json": string(m.Constants[field])})
	}
	return all, nil
}

// plan finds what each column of a header is.
func (m *Mapping) plan(name string, header []string, kind commerce.Kind) (columns []column, err error) {
	for i, text := range header {
		field := text
		if m.Columns != nil {
			field = m.Columns[text]
		}
		if m.Columns != nil && field == "" || m.Columns == nil && text == RefusedColumn {
			continue
		}
		c, err := planColumn(kind, field)
		if err != nil {
			return nil, fmt.Errorf("read %s: column %q: %w", name, text, err)
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

// idColumn returns where the column is that identifiers are derived from; -1 when
// a column has the identifiers.
func (m *Mapping) idColumn(sh *sheet, columns []column) (int, error) {
	at := slices.Index(sh.header, m.IDFrom)
	has := slices.ContainsFunc(columns, func(c column) bool { return c.name == "id" })
	switch {
	case m.IDFrom == "" && has:
		return -1, nil
	case has:
		return 0, fmt.Errorf("read %s: a column has the id already; leave idFrom out", sh.name)
	case m.IDFrom == "":
		return 0, fmt.Errorf("read %s: no column is the id; name one by idFrom in a mapping, such as sku. The columns are %s", sh.name, strings.Join(sh.header, ", "))
	case at < 0:
		return 0, fmt.Errorf("read %s: column %q, to derive the id from, is missing; the columns are %s", sh.name, m.IDFrom, strings.Join(sh.header, ", "))
	}
	return at, nil
}

// readRows reads CSV in the GET shape of a kind, or by a mapping. Three columns are
// the envelope's, op, siteIds and version, and a product's externalRef.
func (s *Source) readRows(sh *sheet, emit emitter) error {
	m := cmp.Or(s.Mapping, &Mapping{})
	sh.decimalComma = m.DecimalComma
	columns, err := m.plan(sh.name, sh.header, s.Kind)
	if err != nil {
		return err
	}
	id, err := m.idColumn(sh, columns)
	if err != nil {
		return err
	}
	constants, err := m.constants(s.Kind)
	if err != nil {
		return err
	}
	fields := []any{}
	for i, c := range columns {
		fields = append(fields, map[string]any{
			"number": i, "column": sh.header[c.at], "name": c.name, "form": string(c.form), "path": c.path,
		})
	}
	plan := map[string]any{"fields": fields, "constants": constants, "prefix": "csv/" + string(s.Kind) + "/", "id": nil}
	if id >= 0 {
		plan["id"] = map[string]any{"number": len(columns), "column": sh.header[id]}
		columns = append(columns, column{at: id, form: formText})
	}
	p := &mapper{source: s, kind: s.Kind, emit: emit, plan: plan, columns: columns}
	if err := p.compile("csv"); err != nil {
		return err
	}
	return p.readGroups(sh, &shopFile{})
}
