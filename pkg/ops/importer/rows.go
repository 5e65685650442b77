package importer

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json/jsontext"
)

// readRows reads CSV in the GET shape of a kind. A column is a field, or a
// path into one: billingAddress.city, items[0].sku, attributes.colour. Three
// columns are the envelope's: op, siteIds and version. An empty cell leaves
// the field out. A cell of an array is JSON or texts separated by semicolons,
// of an object JSON; numbers and true and false are taken where the shape has
// them, so that a sku of 00123 stays text.
func (s *Source) readRows(name string, r io.Reader, emit emitter) error {
	mapping := s.Mapping
	if mapping == nil {
		mapping = &Mapping{}
	}
	sh, err := openSheet(name, r, mapping.separator())
	if err != nil {
		return err
	}
	sh.warn, sh.decimalComma = s.warn, mapping.DecimalComma
	defer s.noteDropped(sh)
	t := &table{sheet: sh, source: s, emit: emit}
	if t.constants, err = mapping.constants(); err != nil {
		return err
	}
	if t.columns, err = mapping.plan(name, sh.header, s.Kind); err != nil {
		return err
	}
	if t.idColumn, err = s.idColumn(sh, t.columns); err != nil {
		return err
	}
	return sh.each(emit, func() {
		record, err := t.readRow()
		if err == nil {
			err = emit(record, nil)
		}
		sh.err = err
	})
}

// table reads the rows of one CSV file.
type table struct {
	*sheet
	source    *Source
	emit      emitter
	columns   []column
	constants []column
	idColumn  int // that identifiers are derived from; -1 when a column has them
}

// column is a header cell understood: where its values go and what they are.
type column struct {
	at   int // in the row
	name string
	path []string // names of members and positions such as [0]; nil for the envelope
	form reflect.Type
}

// maxPosition bounds the array positions of a header: the longest list of a
// record has 1,000 entries.
const maxPosition = 999

// planColumn finds what a field name means.
func planColumn(shape reflect.Type, field string) (c column, err error) {
	envelope := map[string]reflect.Type{
		"op": reflect.TypeFor[string](), "siteIds": reflect.TypeFor[[]string](), "version": reflect.TypeFor[int64](),
	}
	c = column{name: field, form: envelope[field]}
	if c.form == nil {
		c.path, c.form, err = resolve(shape, field)
	}
	return c, err
}

// resolve walks a header path through the shape.
func resolve(shape reflect.Type, text string) (path []string, form reflect.Type, err error) {
	for part := range strings.SplitSeq(text, ".") {
		steps := strings.Split(part, "[")
		member := steps[0]
		if shape, err = memberOf(shape, member); err != nil {
			return nil, nil, err
		}
		path = append(path, member)
		for _, number := range steps[1:] {
			digits, closed := strings.CutSuffix(number, "]")
			p, err := strconv.Atoi(digits)
			if err != nil || !closed || p < 0 || p > maxPosition {
				return nil, nil, fmt.Errorf("a position is written [0] to [%d]", maxPosition)
			}
			if shape = bare(shape); formOf(shape) != formList {
				return nil, nil, fmt.Errorf("%s is no list", member)
			}
			shape = shape.Elem()
			path = append(path, positionStep(p))
		}
	}
	return path, bare(shape), nil
}

// memberOf returns the type of a member; of a free-form object every member
// is text.
func memberOf(shape reflect.Type, member string) (reflect.Type, error) {
	shape = bare(shape)
	switch formOf(shape) {
	case formFree:
		return reflect.TypeFor[string](), nil
	case formObject:
		for i := range shape.NumField() {
			field := shape.Field(i)
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == member && name != "" {
				return field.Type, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no field %q", member)
}

func bare(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// The forms of a cell, by the first character of their JSON. The members of a
// free-form object are not known.
const (
	formText    = '"'
	formNumber  = '0'
	formBoolean = 't'
	formList    = '['
	formObject  = '{'
	formFree    = '*'
)

// formOf says how a cell of a type is written.
func formOf(t reflect.Type) rune {
	switch t {
	case reflect.TypeFor[jsontext.Value]():
		return formFree
	case reflect.TypeFor[value.Amount]():
		return formNumber
	case reflect.TypeFor[value.Time](), reflect.TypeFor[value.ID]():
		return formText
	}
	switch t.Kind() {
	case reflect.Bool:
		return formBoolean
	case reflect.Int, reflect.Int32, reflect.Int64:
		return formNumber
	case reflect.Slice:
		return formList
	case reflect.Struct:
		return formObject
	case reflect.Map:
		return formFree
	}
	return formText
}

func (t *table) readRow() (Record, error) {
	record := Record{Kind: t.source.Kind, Op: commerce.OpPut, Place: t.place()}
	body := node{}
	for _, c := range t.columns {
		cell := t.cell(c.at)
		if cell == "" {
			continue
		}
		if err := t.setCell(&record, &body, c, cell); err != nil {
			return Record{}, err
		}
	}
	if len(body.names) == 0 {
		return Record{}, reject(t.place(), errors.New("the row is empty"))
	}
	if err := t.complete(&body); err != nil {
		return Record{}, err
	}
	encoded, err := body.appendJSON(nil)
	if err != nil {
		return Record{}, reject(t.place(), err)
	}
	record.Body = encoded
	return record, nil
}

func (r *Record) setEnvelope(name string, v jsontext.Value) error {
	into := map[string]any{"op": &r.Op, "version": &r.Version, "siteIds": &r.SiteIDs}[name]
	return strictjson.Unmarshal(v, into)
}

// cellValue turns a cell into JSON.
func cellValue(t reflect.Type, cell string) (jsontext.Value, error) {
	switch form := formOf(t); {
	case form == formNumber:
		a, err := value.ParseAmount(cell)
		if err != nil {
			return nil, err
		}
		return a.MarshalJSON()
	case form == formBoolean:
		if cell = strings.ToLower(cell); cell != "true" && cell != "false" {
			return nil, errors.New("must be true or false")
		}
		return jsontext.Value(cell), nil
	case form == formText:
		return jsontext.AppendQuote(nil, cell)
	case form == formList && cell[0] != '[':
		if formOf(bare(t.Elem())) != formText {
			return nil, errors.New("must be a JSON array, or have a column for each entry's fields")
		}
		return encode(splitList(cell, ";")), nil
	case form != formList && cell[0] != '{':
		return nil, errors.New("must be a JSON object, or have a column for each of its fields")
	}
	var v jsontext.Value
	if err := strictjson.Unmarshal([]byte(cell), &v); err != nil {
		return nil, errors.New("must be valid JSON")
	}
	return v, nil
}
