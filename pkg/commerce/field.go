package commerce

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxFields is how many fields of a kind an organization can declare.
	MaxFields    = 32
	maxFieldKey  = 64  // code points
	maxFieldText = 255 // code points of a value that is found

	// FieldAge is how long the indexer goes on with fields that were changed. A batch
	// of it takes a minute at most, and clocks differ by less than another: so after
	// fieldsKnown no list gets a document that was made without a new field.
	FieldAge    = time.Minute
	fieldsKnown = 3 * time.Minute

	// columnOwn has the values of the organization's fields.
	columnOwn = "own"
)

// FieldType says how the values of a field are compared.
type FieldType string

// The types of fields.
const (
	FieldText    FieldType = "TEXT"
	FieldNumber  FieldType = "NUMBER"
	FieldBoolean FieldType = "BOOLEAN"
)

// Values lists what the type accepts.
func (FieldType) Values() []string {
	return []string{string(FieldText), string(FieldNumber), string(FieldBoolean)}
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *FieldType) UnmarshalText(b []byte) error { return parseEnum(t, b) }

// Field is a key of attributes or metadata that an organization has declared, so that
// the kind's list can be filtered by it.
type Field struct {
	Kind Kind
	Key  string
	Type FieldType
	// Number names the field in documents. None is given twice: what is declared again,
	// or as another type, is another field.
	Number int
}

// Fields are all fields of an organization. The zero value is none.
type Fields struct {
	Version   uint64 // rises by one with each change, from 1
	Fields    []Field
	Last      int        // the greatest Number that was ever given
	Before    int        // what Last was before the last change that gave one
	ChangedAt value.Time // when that was
}

// Declare returns the fields with the wanted ones in the place of all, and whether some
// of these are new. A field that stays keeps its number.
func (f Fields) Declare(wanted []Field, now value.Time) (next Fields, added bool) {
	next = f
	next.Fields = slices.Clone(wanted)
	for i := range next.Fields {
		w := &next.Fields[i]
		at := slices.IndexFunc(f.Fields, func(o Field) bool { return o.Kind == w.Kind && o.Key == w.Key && o.Type == w.Type })
		if at >= 0 {
			w.Number = f.Fields[at].Number
			continue
		}
		next.Last++
		w.Number, added = next.Last, true
	}
	if added {
		next.Before, next.ChangedAt = f.Last, now
	}
	if !slices.Equal(f.Fields, next.Fields) {
		next.Version++
	}
	return next, added
}

// KnownAt is from when on every new document has the values of all fields.
func (f Fields) KnownAt() value.Time { return f.ChangedAt.Add(fieldsKnown) }

// Known is the greatest Number whose values every new document has.
func (f Fields) Known(now value.Time) int {
	if now < f.KnownAt() {
		return f.Before
	}
	return f.Last
}

// Newest is the greatest Number of a kind's fields, 0 when it has none.
func (f Fields) Newest(kind Kind) (n int) {
	for _, field := range f.of(kind) {
		n = max(n, field.Number)
	}
	return n
}

func (f Fields) of(kind Kind) (fields []Field) {
	for _, field := range f.Fields {
		if field.Kind == kind {
			fields = append(fields, field)
		}
	}
	return fields
}

// HasFields reports whether an organization can declare fields of the kind.
func (k Kind) HasFields() bool { return k.known().list.Own != "" }

// Check adds what is wrong with a declared field, whose path begins so.
func (f Field) Check(path string, details *fault.Details) {
	n := utf8.RuneCountInString(f.Key)
	switch {
	case n == 0 || n > maxFieldKey:
		details.Add(fault.InBody, path+"key", fault.DetailOutOfRange, "must have 1 to %d characters", maxFieldKey)
	case strings.ContainsFunc(f.Key, unicode.IsControl) || strings.ContainsAny(f.Key, "[],") || strings.TrimSpace(f.Key) != f.Key:
		details.Add(fault.InBody, path+"key", fault.DetailFormat, "must have no control character, bracket or comma, and no white space around it")
	}
	if f.Type == "" {
		details.Add(fault.InBody, path+"type", fault.DetailRequired, "is required")
	}
	if f.Kind == "" || !f.Kind.HasFields() {
		details.Add(fault.InBody, path+"kind", fault.DetailNotAllowed, "must be a kind with attributes or metadata: product, order, customer or invoice")
	}
}

// token is what documents hold of a value of the field. The number ends it, so that no
// value makes the token of another field.
func (f Field) token(value string) string { return value + "=" + f.present() }

// present is the token of each document that has a value of the field, of any type.
func (f Field) present() string { return strconv.Itoa(f.Number) }

// tokens are what a document holds of its attributes or metadata.
func (f Fields) tokens(kind Kind, own jsontext.Value) (tokens []string, err error) {
	fields := f.of(kind)
	if len(fields) == 0 || len(own) == 0 {
		return nil, nil
	}
	var values map[string]jsontext.Value
	if err := json.Unmarshal(own, &values); err != nil {
		return nil, fmt.Errorf("read the own fields of a %s: %w", kind, err)
	}
	for _, field := range fields {
		v, ok := values[field.Key]
		if !ok || v.Kind() == 'n' {
			continue
		}
		tokens = append(tokens, field.present())
		if text, ok := field.Type.textOf(v); ok {
			tokens = append(tokens, field.token(text))
		}
	}
	return tokens, nil
}

// Comparable is a document as all are, whenever they were made, in a list that has fields
// up to a number: of the values of own fields with those alone, in one order.
func (f Fields) Comparable(kind Kind, d *columnar.Document, built int) columnar.Document {
	if kind == "" {
		return *d
	}
	declared := map[string]bool{}
	for _, field := range f.of(kind) {
		declared[field.present()] = field.Number <= built
	}
	return d.MapText(kind.known().list.Schema.Col(columnOwn), func(tokens []string) []string {
		tokens = slices.DeleteFunc(tokens, func(token string) bool { return !declared[token[strings.LastIndex(token, "=")+1:]] })
		slices.Sort(tokens)
		return tokens
	})
}

// textOf is the text by which a value is found; ok is false when it is of another type or
// too long.
func (t FieldType) textOf(v jsontext.Value) (text string, ok bool) {
	kinds := map[FieldType]string{FieldText: `"`, FieldNumber: "0", FieldBoolean: "tf"}[t]
	if !strings.Contains(kinds, string(rune(v.Kind()))) {
		return "", false
	}
	text = string(v)
	if t == FieldText && json.Unmarshal(v, &text) != nil {
		return "", false
	}
	text, err := t.parse(text)
	return text, err == nil
}

// parse brings the text of a value to the form in which it is compared. The error says
// what it must be.
func (t FieldType) parse(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case t == FieldBoolean && text != "true" && text != "false":
		return "", errors.New("must be true or false")
	case t == FieldNumber:
		return decimal(text)
	case utf8.RuneCountInString(text) > maxFieldText:
		return "", fmt.Errorf("must have at most %d characters", maxFieldText)
	}
	return text, nil
}

// decimal writes a JSON number in one form. It is exact, because a double would make one
// of long numbers that differ; only what a double takes for 0 is 0.
func decimal(text string) (string, error) {
	v := jsontext.Value(text)
	near, err := strconv.ParseFloat(text, 64)
	switch {
	case v.Kind() != '0' || !v.IsValid():
		return "", errors.New("must be a number as JSON writes it, such as -1.5")
	case err != nil || len(text) > maxFieldText:
		return "", fmt.Errorf("must be in the range of a double and have at most %d characters", maxFieldText)
	case near == 0:
		return "0", nil
	}
	exact, _ := new(big.Rat).SetString(text)
	return exact.RatString(), nil
}

// filter adds the filters by own fields to a query. The fault names each that is not
// declared, or asks for a value of another type.
func (f Fields) filter(w *where, kind Kind) (newest int, err error) {
	var details fault.Details
	for _, given := range w.Own {
		fields := f.of(kind)
		at := slices.IndexFunc(fields, func(field Field) bool { return field.Key == given.Key })
		if at < 0 {
			details.Add(fault.InQuery, given.Param, fault.DetailUnknown, "names a field of the organization that is not declared: an administrator declares it at /developers/index/fields")
			continue
		}
		field := fields[at]
		newest = max(newest, field.Number)
		tokens := []string{field.present()}
		if given.Values != nil {
			tokens = nil
		}
		for _, text := range given.Values {
			text, err := field.Type.parse(text)
			if err != nil {
				details.Add(fault.InQuery, given.Param, fault.DetailFormat, "%s", err.Error())
			}
			tokens = append(tokens, field.token(text))
		}
		w.add(columnar.In(w.schema.Col(columnOwn), tokens...))
	}
	return newest, details.Err()
}
