package importer

import (
	stdjson "encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// column is a field of a record, and where its value is.
type column struct {
	at   int // in the row
	name string
	path []any // names of members and positions in lists
	form form
}

// form says how a cell of a field is written.
type form string

const (
	formText      form = "text"
	formNumber    form = "number"
	formBoolean   form = "boolean"
	formTexts     form = "texts" // separated by semicolons, or a list of JSON
	formList      form = "list"  // of JSON
	formObject    form = "object"
	formCategory  form = "category"
	formBrand     form = "brand"
	formReference form = "reference" // beside a product
)

var envelopeForms = map[string]form{"op": formText, "version": formNumber, "siteIds": formTexts}

// planColumn finds what a field name means.
func planColumn(kind commerce.Kind, field string) (column, error) {
	c := column{name: field, path: []any{field}}
	known := false
	switch c.form, known = envelopeForms[field]; {
	case known:
		return c, nil
	case kind == commerce.KindProduct && field == "category":
		c.form = formCategory
		return c, nil
	case kind == commerce.KindProduct && field == "brand":
		c.form = formBrand
		return c, nil
	case kind == commerce.KindProduct && field == "externalRef":
		c.form = formReference
		return c, nil
	}
	var err error
	if c.path, err = splitField(field); err == nil {
		c.form, err = findForm(kind, c.path)
	}
	return c, err
}

// maxPosition bounds the array positions of a header: the longest list of a
// record has 1,000 entries.
const maxPosition = 999

var fieldStep = regexp.MustCompile(`^([^.\[\]]+)((?:\[[^\]]*\])*)$`)

// splitField divides items[0].sku into items, 0 and sku.
func splitField(field string) (path []any, err error) {
	for part := range strings.SplitSeq(field, ".") {
		step := fieldStep.FindStringSubmatch(part)
		if step == nil {
			return nil, fmt.Errorf("unknown field %q; a position is written [0] to [%d]", part, maxPosition)
		}
		path = append(path, step[1])
		for number := range strings.SplitSeq(strings.Trim(step[2], "[]"), "][") {
			if number == "" && step[2] == "" {
				break
			}
			p, err := strconv.Atoi(number)
			if err != nil || p < 0 || p > maxPosition {
				return nil, fmt.Errorf("a position is written [0] to [%d]", maxPosition)
			}
			path = append(path, p)
		}
	}
	return path, nil
}

// findForm asks the decoder of the kind what it takes at a path. What takes both
// objects and lists is free-form: its members are texts.
func findForm(kind commerce.Kind, path []any) (form, error) {
	takes := func(value string) error {
		body := value
		for _, step := range slices.Backward(path) {
			if name, member := step.(string); member {
				body = "{" + string(encode(name)) + ":" + body + "}"
			} else {
				body = "[" + body + "]"
			}
		}
		return strictjson.Unmarshal([]byte(body), commerce.New(kind))
	}
	object, list := takes(`{}`) == nil, takes(`[]`) == nil
	switch {
	case object && list && len(path) > 1:
		return formText, nil
	case object:
		return formObject, nil
	case list && takes(`[{}]`) == nil:
		return formList, nil
	case list:
		return formTexts, nil
	case takes(`0`) == nil:
		return formNumber, nil
	case takes(`true`) == nil:
		return formBoolean, nil
	}
	err := takes(`""`)
	if f, ok := fault.As(err); ok && len(f.Details) > 0 {
		switch bad := f.Details[0]; bad.Code {
		case fault.DetailUnknown:
			return "", fmt.Errorf("unknown field %q", bad.Field)
		case fault.DetailType:
			return "", fmt.Errorf("%s %s", bad.Field, bad.Message)
		}
	}
	return formText, nil // or it is wrong only for what is asked of the text, such as being a time
}

// read returns the row's cell, a number in its type; nil for an empty one.
func (c *column) read(row *sheetRow) (v any, err error) {
	cell := row.cell(c.at)
	switch {
	case cell == "":
		return nil, nil
	case c.form == formNumber:
		var a value.Amount
		a, err = row.parseAmount(cell)
		v = stdjson.Number(a.String())
	default:
		v = cell
	}
	if err != nil {
		bad := reject(row.place, err)
		bad.Field = row.header[c.at]
		return nil, bad
	}
	return v, nil
}
