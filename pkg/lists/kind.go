package lists

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Kind is the type of a filter's value. This file holds all that depends on it:
// the parameters, how their text is read, and the filter of an index.
type Kind uint8

// The kinds of filter. Each becomes one parameter, those of [spans] two.
const (
	ID      Kind = iota + 1 // one UUID
	IDs                     // up to Max UUIDs, comma-separated; matches documents by their id
	Enum                    // one or more of Values and Sets, comma-separated
	Code                    // one or more texts that Check accepts, comma-separated
	Bool                    // true or false
	Text                    // compared whole, folded
	Range                   // a time from, inclusive, and a time to, exclusive: createdFrom, createdTo
	Visible                 // a Range of the time at which a change became visible
	Amount                  // an amount that is at least one and at most another: minTotal, maxTotal
)

// argument is the value of one filter.
type argument struct {
	ids       []value.ID
	texts     []string
	flag      bool
	null      bool   // the word for documents without a value
	low, high *int64 // the ends of a span; nil where none was given
}

func (f *Filter) params() []Param {
	p := Param{Name: f.Name, Type: "string", Description: f.Description, Default: f.Default}
	switch f.Kind {
	case ID:
		if f.Null == "" {
			p.Format = "uuid"
		} else {
			p.Pattern = "^(" + f.Null + "|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$"
		}
	case IDs:
		p.Format, p.Multi, p.Most = "uuid", true, f.Max
	case Enum:
		p.Enum, p.Multi = f.words(), true
	case Code:
		p.Pattern, p.Multi = f.Pattern, true
	case Bool:
		p.Type = "boolean"
	case Text:
		p.Pattern = `\S`
	default:
		return spans[f.Kind].params(f, p)
	}
	return []Param{p}
}

// readers read a filter's text, by its kind. The error says what the filter takes.
var readers = map[Kind]func(f *Filter, text string) (argument, error){
	ID: func(f *Filter, text string) (argument, error) {
		if f.Null != "" && text == f.Null {
			return argument{null: true}, nil
		}
		id, err := value.ParseID(text)
		if err != nil && f.Null != "" {
			err = fmt.Errorf("%w, or %s", err, f.Null)
		}
		return argument{ids: []value.ID{id}}, err
	},
	IDs: func(_ *Filter, text string) (a argument, err error) {
		err = eachOf(text, func(part string) error {
			id, err := value.ParseID(part)
			a.ids = append(a.ids, id)
			return err
		})
		return a, err
	},
	Enum: func(f *Filter, text string) (argument, error) {
		var a argument
		for word := range strings.SplitSeq(text, ",") {
			switch set, is := f.Sets[word]; {
			case is:
				a.texts = append(a.texts, set...)
			case slices.Contains(f.Values, word):
				a.texts = append(a.texts, word)
			default:
				return a, fmt.Errorf("must be one or several, comma-separated, of %s", strings.Join(f.words(), ", "))
			}
		}
		return a, nil
	},
	Code: func(f *Filter, text string) (argument, error) {
		return argument{texts: strings.Split(text, ",")}, eachOf(text, f.Check)
	},
	Bool: func(_ *Filter, text string) (argument, error) {
		if text != "true" && text != "false" {
			return argument{}, errors.New("must be true or false")
		}
		return argument{flag: text == "true"}, nil
	},
	Text: func(_ *Filter, text string) (argument, error) {
		return argument{texts: []string{strings.TrimSpace(text)}}, nil
	},
}

// eachOf checks each of several values, separated by commas.
func eachOf(text string, check func(part string) error) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := check(part); err != nil {
			return fmt.Errorf("%w, or several, comma-separated; %q is not one", err, part)
		}
	}
	return nil
}

// span is what kinds with two ends, each a parameter, decide.
type span struct {
	names       func(f *Filter) (low, high string)
	low, high   string // what the descriptions of the parameters say of the ends
	above       string // says that the lower end lies beyond the upper one
	typ, format string // of the parameters
	bound       *int64 // the largest magnitude that the parameters document, in whole units; nil for times
	parse       func(text string) (int64, error)
	index       func(col columnar.Col, low, high int64) columnar.Filter
}

var spans = map[Kind]*span{
	Range:   times(columnar.Within),
	Visible: times(func(_ columnar.Col, from, to int64) columnar.Filter { return columnar.VisibleWithin(from, to) }),
	Amount: {
		names: func(f *Filter) (low, high string) {
			name := strings.ToUpper(f.Name[:1]) + f.Name[1:]
			return "min" + name, "max" + name
		},
		low: " At least this amount.", high: " At most this amount.", above: "more than",
		typ: "number", bound: bound(int64(value.MaxAmount / value.AmountScale)),
		parse: func(text string) (int64, error) {
			amount, err := value.ParseAmount(text)
			return int64(amount), err
		},
		index: columnar.Between,
	},
}

// times are spans of time, which make their filter by index.
func times(index func(col columnar.Col, from, to int64) columnar.Filter) *span {
	return &span{
		names: func(f *Filter) (low, high string) { return f.Name + "From", f.Name + "To" },
		low:   " At this time or later.", high: " Before this time.", above: "after", typ: "string", format: "date-time",
		parse: func(text string) (int64, error) {
			t, err := value.ParseBound(text)
			return int64(t), err
		},
		index: index,
	}
}

func (s *span) params(f *Filter, p Param) []Param {
	p.Type, p.Format = s.typ, s.format
	if s.bound != nil {
		p.Min, p.Max = bound(-*s.bound), s.bound
	}
	low, high := p, p
	low.Name, high.Name = s.names(f)
	low.Description += s.low
	high.Description += s.high
	return []Param{low, high}
}

// index is the filter of an index. It panics on a column that the schema
// does not have.
func (f *Filter) index(schema *columnar.Schema, a argument) columnar.Filter {
	if f.Kind == IDs {
		ids := make([][16]byte, len(a.ids))
		for i, id := range a.ids {
			ids[i] = id
		}
		return columnar.IDs(ids...)
	}
	var col columnar.Col
	if f.Kind != Visible {
		col = schema.Col(f.Column)
	}
	if s := spans[f.Kind]; s != nil {
		return s.index(col, value.Or(a.low, math.MinInt64), value.Or(a.high, math.MaxInt64))
	}
	switch f.Kind {
	case ID:
		if a.null {
			return columnar.Null(col)
		}
		return columnar.In(col, Key(a.ids[0]))
	case Bool:
		return columnar.Is(col, a.flag)
	}
	return columnar.In(col, a.texts...)
}
