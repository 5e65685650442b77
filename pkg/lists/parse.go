package lists

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/fold"
	"github.com/commerce-integration/service/pkg/value"
)

// Parse checks a query string. The error is a [fault.Error] that names every
// parameter that is wrong and says what it takes.
func (l *List) Parse(values url.Values) (*Query, error) {
	p := parser{list: l, values: values, q: &Query{
		Page: 1, Limit: DefaultLimit, Order: l.Orders[0], Desc: l.Orders[0].Desc, list: l, given: map[string]argument{},
	}}
	p.checkNames()
	p.page()
	p.order()
	if len(l.Search) > 0 {
		p.search()
	}
	for i := range l.Filters {
		p.filter(&l.Filters[i])
	}
	p.details.Sort()
	if err := p.details.Err(); err != nil {
		return nil, err
	}
	p.q.raw = linked(values)
	return p.q, nil
}

type parser struct {
	list    *List
	values  url.Values
	q       *Query
	details fault.Details
}

func (p *parser) refuse(name, code, format string, args ...any) {
	p.details.Add(fault.InQuery, name, code, format, args...)
}

// checkNames refuses what the list does not take and what is given twice.
func (p *parser) checkNames() {
	for name, given := range p.values {
		switch {
		case !p.list.takes(name):
			p.refuse(name, fault.DetailUnknown, "is not a parameter of this list")
		case len(given) > 1:
			p.refuse(name, fault.DetailDuplicate, "must be given once")
		}
	}
}

// takes reports whether the list has a parameter of the name: one of
// [List.Parameters], without making their descriptions for every query.
func (l *List) takes(name string) bool {
	switch name {
	case paramPage, paramLimit, paramOrderBy, paramDirection:
		return true
	case paramAfterID:
		return l.Walk
	case paramSearch:
		return len(l.Search) > 0
	}
	return slices.ContainsFunc(l.Filters, func(f Filter) bool {
		if f.Kind != Range && f.Kind != Visible {
			return name == f.Name
		}
		end, ours := strings.CutPrefix(name, f.Name)
		return ours && (end == "From" || end == "To")
	})
}

// get returns a parameter that is given once and not empty; an empty one is
// refused.
func (p *parser) get(name string) (text string, ok bool) {
	given := p.values[name]
	if len(given) != 1 {
		return "", false
	}
	text = given[0]
	if strings.TrimSpace(text) == "" {
		p.refuse(name, fault.DetailFormat, "must not be empty; leave the parameter out instead")
		return "", false
	}
	return text, true
}

func (p *parser) page() {
	p.integer(paramPage, MaxPage, &p.q.Page)
	p.integer(paramLimit, MaxLimit, &p.q.Limit)
	if !p.list.Walk {
		return
	}
	text, ok := p.get(paramAfterID)
	if !ok {
		return
	}
	id, err := value.ParseID(text)
	if err != nil {
		p.refuse(paramAfterID, fault.DetailFormat, "%s", err.Error())
		return
	}
	p.q.After = &id
	for _, other := range []string{paramPage, paramOrderBy, paramDirection} {
		if p.values.Has(other) {
			p.refuse(other, fault.DetailNotAllowed, "must not be given with afterId, which walks the list by id")
		}
	}
}

// integer reads a whole number from 1: digits without sign or leading zero.
func (p *parser) integer(name string, most int, into *int) {
	text, ok := p.get(name)
	if !ok {
		return
	}
	digits := strings.Trim(text, "0123456789") == ""
	if !digits || len(text) > 1 && text[0] == '0' {
		p.refuse(name, fault.DetailFormat, "must be a whole number between 1 and %d, digits only", most)
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.refuse(name, fault.DetailOutOfRange, "must be between 1 and %d", most)
		return
	}
	*into = n
}

func (p *parser) order() {
	if text, ok := p.get(paramOrderBy); ok {
		if order, known := p.list.order(text); known {
			p.q.Order, p.q.Desc = order, order.Desc
		} else {
			p.refuse(paramOrderBy, fault.DetailFormat, "must be one of %s", strings.Join(p.list.orderNames(), ", "))
		}
	}
	if text, ok := p.get(paramDirection); ok {
		switch strings.ToLower(text) {
		case "asc":
			p.q.Desc = false
		case "desc":
			p.q.Desc = true
		default:
			p.refuse(paramDirection, fault.DetailFormat, "must be asc or desc")
		}
	}
}

// search may be blank, which searches for nothing.
func (p *parser) search() {
	text := strings.TrimSpace(p.values.Get(paramSearch))
	if utf8.RuneCountInString(text) > maxSearch {
		p.refuse(paramSearch, fault.DetailOutOfRange, "must have at most %d characters", maxSearch)
		return
	}
	if len(strings.Fields(text)) > maxTokens {
		p.refuse(paramSearch, fault.DetailOutOfRange, "must have at most %d words", maxTokens)
		return
	}
	p.q.Search = fold.Tokens(text)
}

func (p *parser) filter(f *Filter) {
	if f.Kind == Range || f.Kind == Visible {
		p.between(f)
		return
	}
	text, ok := p.get(f.Name)
	if !ok {
		return
	}
	a, err := f.read(text)
	if err != nil {
		p.details = append(p.details, *err)
		return
	}
	p.q.given[f.Name] = a
}

// read reads a filter's text.
func (f *Filter) read(text string) (a argument, refused *fault.Detail) {
	refuse := func(code, format string, args ...any) *fault.Detail {
		return &fault.Detail{Field: f.Name, In: fault.InQuery, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	switch f.Kind {
	case ID:
		if f.Null != "" && text == f.Null {
			return argument{null: true}, nil
		}
		id, err := value.ParseID(text)
		if err != nil && f.Null != "" {
			return a, refuse(fault.DetailFormat, "%s, or %s", err.Error(), f.Null)
		}
		if err != nil {
			return a, refuse(fault.DetailFormat, "%s", err.Error())
		}
		a.ids = []value.ID{id}
	case IDs:
		parts := strings.Split(text, ",")
		if len(parts) > f.Max {
			return a, refuse(fault.DetailOutOfRange, "must have at most %d entries", f.Max)
		}
		for _, part := range parts {
			id, err := value.ParseID(part)
			if err != nil {
				return a, refuse(fault.DetailFormat, "%s, or several, comma-separated; %q is not one", err.Error(), part)
			}
			a.ids = append(a.ids, id)
		}
	case Enum:
		a.texts = strings.Split(text, ",")
		for _, t := range a.texts {
			if !slices.Contains(f.Values, t) {
				return a, refuse(fault.DetailFormat, "must be one or several, comma-separated, of %s", strings.Join(f.Values, ", "))
			}
		}
	case Code:
		a.texts = strings.Split(text, ",")
		for _, t := range a.texts {
			if err := f.Check(t); err != nil {
				return a, refuse(fault.DetailFormat, "%s, or several, comma-separated; %q is not one", err.Error(), t)
			}
		}
	case Bool:
		if text != "true" && text != "false" {
			return a, refuse(fault.DetailFormat, "must be true or false")
		}
		a.flag = text == "true"
	case Text:
		a.texts = []string{strings.TrimSpace(text)}
	}
	return a, nil
}

// between reads the two ends of a range.
func (p *parser) between(f *Filter) {
	var a argument
	for _, end := range []struct {
		name string
		into **value.Time
	}{{f.Name + "From", &a.from}, {f.Name + "To", &a.to}} {
		text, ok := p.get(end.name)
		if !ok {
			continue
		}
		t, err := value.ParseTime(text)
		if err != nil {
			p.refuse(end.name, fault.DetailFormat, "%s", err.Error())
			continue
		}
		*end.into = &t
	}
	if a.from != nil && a.to != nil && *a.from > *a.to {
		p.refuse(f.Name+"From", fault.DetailOutOfRange, "must not be after %sTo", f.Name)
		return
	}
	if a.from != nil || a.to != nil {
		p.q.given[f.Name] = a
	}
}
