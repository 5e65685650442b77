package commerce

import (
	"reflect"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// shape is the Go type of a kind's GET shape, from which the types of its
// columns and filters follow.
type shape struct{ reflect.Type }

func shapeOf(d *definition) shape { return shape{reflect.TypeOf(d.record()).Elem()} }

// position is the index of the field that has the JSON name, -1 when there is none.
func (s shape) position(name string) int {
	for i := range s.NumField() {
		if s.Field(i).Tag.Get("json") == name {
			return i
		}
	}
	return -1
}

// zero is a zero value of the field's type, or of what it points to; nil when
// the field does not exist.
func (s shape) zero(name string) any {
	i := s.position(name)
	if i < 0 {
		return nil
	}
	t := s.Field(i).Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.Zero(t).Interface()
}

// column declares the column of a field. A text is sorted, searched and
// matched as the list needs it.
func (s shape) column(name string, search []string, list *lists.List) columnar.Column {
	c := columnar.Column{Name: name, Type: columnar.Keyword}
	switch s.zero(name).(type) {
	case bool:
		c.Type = columnar.Bool
	case int64, value.Amount:
		c.Type = columnar.Number
	case value.Time:
		c.Type = columnar.Time
	case string, []string:
		c.Type = columnar.Text
	}
	if name == columnOwn {
		return columnar.Column{Name: name, Type: columnar.Text, Match: true, Each: true}
	}
	c.Sort = slices.ContainsFunc(list.Orders, func(o lists.Order) bool { return o.Name == name })
	c.Search = slices.Contains(search, name)
	c.Match = slices.ContainsFunc(list.Filters, func(f lists.Filter) bool { return f.Column == name && f.Kind == lists.Text })
	if c.Match {
		c.Type = columnar.Text // also without a field
	}
	return c
}

// filter completes a filter that names its column only.
func (s shape) filter(f lists.Filter) lists.Filter {
	if f.Kind != 0 {
		return f
	}
	f.Column = f.Name
	switch zero := s.zero(f.Name).(type) {
	case value.ID:
		f.Kind = lists.ID
	case bool:
		f.Kind = lists.Bool
	case value.Time:
		f.Kind, f.Name = lists.Range, strings.TrimSuffix(f.Name, "At")
	case string:
		f.Kind = lists.Text
		f.Description += " Compared whole, regardless of case and accents."
	case Currency:
		f.Kind, f.Check, f.Pattern = lists.Code, checkCurrency, "^[A-Z]{3}$"
	case interface{ Values() []string }:
		f.Kind, f.Values = lists.Enum, zero.Values()
	default:
		panic("commerce: no filter by " + f.Name)
	}
	return f
}

// indexedField is a field of a shape and the column that holds it.
type indexedField struct {
	col   columnar.Col
	field int
}

// fields are those that have a column. siteIds, own and a product's externalRef are columns without one.
func (s shape) fields(schema *columnar.Schema) (fields []indexedField) {
	for i, c := range schema.Columns() {
		if at := s.position(c.Name); at >= 0 {
			fields = append(fields, indexedField{columnar.Col(i + 1), at}) //nolint:gosec // at most 64 columns
		}
	}
	return fields
}

// Document returns the columns of a stored record for its kind's list, with the fields
// that its organization has declared; visible is when the revision became visible in
// lists. A tombstone gives a tombstone.
func Document(s *Stored, visible value.Time, declared Fields) (columnar.Document, error) {
	d := s.Kind.known()
	schema := d.list.Schema
	if s.Deleted {
		return schema.Tombstone(s.ID, 0, int64(s.Revision), int64(visible)), nil
	}
	record, err := s.Record()
	if err != nil {
		return columnar.Document{}, err
	}
	b := schema.Build(s.ID, 0)
	if d.sites {
		b.Keyword(schema.Col(columnSites), lists.Keys(s.SiteIDs)...)
	}
	if s.ExternalRef != "" {
		b.Text(schema.Col(columnReference), s.ExternalRef)
	}
	r := reflect.ValueOf(record).Elem()
	if d.own != "" { // before other texts, which MaxText may cut off
		tokens, err := declared.tokens(d.kind, r.Field(d.ownAt).Bytes())
		if err != nil {
			return columnar.Document{}, err
		}
		b.Text(schema.Col(columnOwn), tokens...)
	}
	for _, f := range d.fields {
		setColumn(b, f.col, r.Field(f.field))
	}
	return b.Document(int64(s.Revision), int64(visible)), nil
}

// setColumn sets a column to a field's value; null leaves it out.
func setColumn(b *columnar.Builder, col columnar.Col, field reflect.Value) {
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return
		}
		field = field.Elem()
	}
	switch v := field.Addr().Interface().(type) {
	case *value.ID:
		b.Keyword(col, lists.Key(*v))
	case *bool:
		b.Bool(col, *v)
	case *int64:
		b.Number(col, *v)
	case *value.Amount:
		b.Number(col, int64(*v))
	case *value.Time:
		b.Time(col, int64(*v))
	case *string:
		b.Text(col, *v)
	case *[]string:
		b.Text(col, *v...)
	default: // an enum or a code
		b.Keyword(col, field.String())
	}
}
