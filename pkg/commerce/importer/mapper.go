package importer

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/shop"
)

// mapper runs a format's program over rows.
type mapper struct {
	source  *Source
	kind    commerce.Kind // of the records
	emit    emitter
	program string // its text
	code    *gojq.Code
	others  []otherColumn // nil before the first row
	rows    []*sheetRow   // that the program knows by their numbers

	plan    map[string]any // of a mapping: its columns and constants
	columns []column
}

// refusal is a row that a program refuses.
type refusal struct {
	row            int
	field, message string
}

func (r *refusal) Error() string { return r.field + " " + r.message }

// Value implements [gojq.ValueError].
func (r *refusal) Value() any {
	return map[string]any{"row": r.row, "field": r.field, "message": r.message}
}

// compile makes the program of a format, with the functions that it may call.
func (m *mapper) compile(name string) (err error) {
	m.program, m.code, err = compileProgram(name,
		gojq.WithFunction("get", 1, 1, m.onRow(func(row *sheetRow, args []any) (any, error) {
			cell, _ := row.get(textOf(args[0]))
			return maybeText(cell), nil
		})),
		gojq.WithFunction("amount", 1, 1, m.onCell(func(row *sheetRow, cell string) (any, error) {
			a, err := row.parseAmount(cell)
			return stdjson.Number(a.String()), err
		})),
		gojq.WithFunction("time", 1, 1, m.onCell(func(_ *sheetRow, cell string) (any, error) { return parseTime(cell) })),
		gojq.WithFunction("country", 1, 1, m.onRow(country)),
		gojq.WithFunction("series", 1, 1, m.onRow(func(row *sheetRow, args []any) (any, error) {
			return row.series(textOf(args[0])), nil
		})),
		gojq.WithFunction("others", 1, 1, m.onRow(func(row *sheetRow, args []any) (any, error) {
			return m.otherCells(row, m.rows[numberOf(args[0])]), nil
		})),
		gojq.WithFunction("fail", 2, 2, m.onRow(func(row *sheetRow, args []any) (any, error) {
			return nil, row.reject(textOf(args[0]), textOf(args[1]))
		})),
		gojq.WithFunction("plan", 0, 0, func(any, []any) any { return m.plan }),
		gojq.WithFunction("cell", 1, 1, m.onRow(func(row *sheetRow, args []any) (any, error) { return m.columns[numberOf(args[0])].read(row) })),
		gojq.WithFunction("columns", 0, 0, m.onRow(func(row *sheetRow, _ []any) (any, error) { return row.columns(), nil })),
		gojq.WithFunction("currency", 0, 0, func(any, []any) any { return m.source.Currency }),
		gojq.WithFunction("shopify", 1, 1, func(_ any, args []any) any { return shop.ShopifyWords[textOf(args[0])] }),
		gojq.WithFunction("distinct", 0, 0, func(texts any, _ []any) any { return distinct(texts) }),
		gojq.WithFunction("lower", 0, 0, func(text any, _ []any) any { return strings.ToLower(textOf(text)) }),
		gojq.WithFunction("id", 1, 1, func(_ any, args []any) any {
			return value.DeriveID(shop.Namespace, textOf(args[0])).String()
		}),
		gojq.WithFunction("part", 2, 2, func(_ any, args []any) any {
			return value.DeriveID(value.MustID(textOf(args[0])), textOf(args[1])).String()
		}),
		gojq.WithFunction("calculate", 3, 3, func(_ any, args []any) any { return calculate(args[0], textOf(args[1]), args[2]) }),
	)
	return err
}

// onRow makes a function of a row, which comes as its number.
func (m *mapper) onRow(read func(row *sheetRow, args []any) (any, error)) func(any, []any) any {
	return func(number any, args []any) any {
		n, ok := number.(int)
		if !ok {
			return fmt.Errorf("%v is not a row", number)
		}
		v, err := read(m.rows[n], args)
		if bad := (*Rejection)(nil); errors.As(err, &bad) {
			return &refusal{n, bad.Field, bad.Message}
		}
		if err != nil {
			return err
		}
		return v
	}
}

// onCell makes a function of the first cell of columns that is not empty; without one it gives null.
func (m *mapper) onCell(read func(row *sheetRow, cell string) (any, error)) func(any, []any) any {
	return m.onRow(func(row *sheetRow, args []any) (any, error) {
		cell, at := row.get(textOf(args[0]))
		if cell == "" {
			return nil, nil
		}
		v, err := read(row, cell)
		if err != nil {
			return nil, rejectField(row.place, row.header[at], "%s", err)
		}
		return v, nil
	})
}

// run maps the rows of one record.
func (m *mapper) run(rows []*sheetRow) error {
	m.rows = rows
	numbers := make([]any, len(rows))
	for i := range rows {
		numbers[i] = i
	}
	if len(rows) == 0 {
		return nil
	}
	return m.evaluate(numbers)
}

// evaluate emits what the program makes of its input.
func (m *mapper) evaluate(input []any) error {
	outputs := m.code.Run(input)
	for {
		output, more := outputs.Next()
		if !more {
			return nil
		}
		var refused *refusal
		switch output := output.(type) {
		case error:
			if !errors.As(output, &refused) {
				return fmt.Errorf("read %s: %s", m.rows[0].place.File, strings.TrimPrefix(output.Error(), "error: "))
			}
			return rejectField(m.rows[refused.row].place, refused.field, "%s", refused.message)
		case map[string]any:
			if err := m.output(output); err != nil {
				return err
			}
		}
	}
}

// output emits a record and its categories, or the rejection of a row.
func (m *mapper) output(output map[string]any) error {
	if bad, ok := output["rejected"].(map[string]any); ok {
		place := m.rows[numberOf(bad["row"])].place
		return m.emit(Record{}, rejectField(place, textOf(bad["field"]), "%s", bad["message"]))
	}
	place := m.rows[numberOf(output["row"])].place
	to := Record{Kind: cmp.Or(commerce.Kind(textOf(output["kind"])), m.kind), Op: commerce.OpPut, Place: place}
	if err := to.setEnvelope(output); err != nil {
		return m.emit(Record{}, err)
	}
	record := output["record"]
	if !withoutNulls(record) {
		return m.emit(Record{}, rejectField(place, "", "a list has an empty entry before another"))
	}
	paths, _ := output["categories"].([]any)
	for _, path := range paths {
		for _, c := range shop.Categories(textOf(path)) {
			if m.source.categories[c.ID] {
				continue
			}
			m.source.categories[c.ID] = true
			category := Record{Kind: commerce.KindCategory, Op: commerce.OpPut, Body: c.Record, Place: place}
			if err := m.emit(category, nil); err != nil {
				return err
			}
		}
	}
	body, err := gojq.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a record of %s: %w", place, err)
	}
	to.Body = body
	return m.emit(to, nil)
}

// withoutNulls leaves out the members that are null, so that the service derives them or takes their default. ok is false
// when an entry of a list is null.
func withoutNulls(v any) (ok bool) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return member == nil })
		for _, member := range v {
			if !withoutNulls(member) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(entry any) bool { return entry == nil || !withoutNulls(entry) })
	}
	return true
}

// distinct are the texts of a list, each once, without nulls.
func distinct(list any) []any {
	entries, _ := list.([]any)
	all, known := []any{}, map[string]bool{}
	for _, entry := range entries {
		if text, ok := entry.(string); ok && !known[text] {
			known[text] = true
			all = append(all, text)
		}
	}
	return all
}

// textOf and numberOf give what a program's value is, as the functions and outputs of the formats have it.
func textOf(v any) string {
	text, _ := v.(string)
	return text
}

func numberOf(v any) int {
	n, _ := v.(int)
	return n
}

// maybeText is nil for an empty text.
func maybeText(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// calculate adds or subtracts amounts; without one of them the result is null.
func calculate(a any, operator string, b any) any {
	if a == nil || b == nil {
		return nil
	}
	x, errX := value.ParseAmount(fmt.Sprint(a))
	y, errY := value.ParseAmount(fmt.Sprint(b))
	if err := errors.Join(errX, errY); err != nil {
		return err
	}
	if operator == "-" {
		y = -y
	}
	result, ok := x.Add(y)
	if !ok {
		return fmt.Errorf("%s %s %s is out of range", x, operator, y)
	}
	return stdjson.Number(result.String())
}

// parseTime reads 2026-05-01 09:58:12 +0200 as Shopify writes it, or a time of JSON.
func parseTime(cell string) (any, error) {
	if at, err := time.Parse("2006-01-02 15:04:05 -0700", cell); err == nil {
		return value.TimeOf(at).String(), nil
	}
	if at, err := value.ParseTime(cell); err == nil {
		return at.String(), nil
	}
	return nil, errors.New("must be a time such as 2026-05-01 09:58:12 +0200")
}

func country(row *sheetRow, args []any) (any, error) {
	cell, at := row.get(textOf(args[0]))
	if len(cell) == len("DE") {
		return cell, nil
	}
	if cell != "" {
		row.warn(row.place, fmt.Sprintf("%s: %q is not a country code such as DE, and left out", row.header[at], cell))
	}
	return nil, nil
}
