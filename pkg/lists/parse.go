package lists

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Parse reads the values of a query string. Its names must be checked: each is
// one of [List.Params] and, unless that is Keyed, given once. The error is a [fault.Error] that names
// every parameter whose value is wrong and says what it takes.
func (l *List) Parse(values url.Values) (*Query, error) {
	p := parser{list: l, values: values, q: &Query{
		Page: 1, Limit: DefaultLimit, Order: l.Orders[0], Desc: l.Orders[0].Desc, list: l, given: map[string]argument{},
	}}
	p.page()
	p.order()
	p.search()
	for i := range l.Filters {
		p.filter(&l.Filters[i])
	}
	if l.Own != "" {
		p.own()
	}
	p.details.Sort()
	if err := p.details.Err(); err != nil {
		return nil, err
	}
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

// get returns a parameter that is given and not blank; a blank one is refused.
func (p *parser) get(name string) (text string, ok bool) {
	if !p.values.Has(name) {
		return "", false
	}
	text = p.values.Get(name)
	if strings.TrimSpace(text) == "" {
		p.refuse(name, fault.DetailFormat, "must not be empty; leave the parameter out instead")
		return "", false
	}
	return text, true
}

func (p *parser) page() {
	p.integer(ParamPage, MaxPage, &p.q.Page)
	if p.list.Walk {
		p.walk()
	}
	most := MaxLimit
	if p.list.Walks(p.values) {
		most = max(most, p.list.Most)
	}
	p.integer(paramLimit, most, &p.q.Limit)
}

// walk reads where a walk by id goes on: behind afterId; with orderBy=id alone it
// begins, so that both may be sent with every request of a walk.
func (p *parser) walk() {
	by := p.values.Get(paramOrderBy)
	if by == byID {
		p.q.After = &value.ID{}
	}
	if text, ok := p.get(ParamAfterID); ok {
		id, err := value.ParseID(text)
		if err != nil {
			p.refuse(ParamAfterID, fault.DetailFormat, "%s", err.Error())
			return
		}
		p.q.After = &id
		if by != "" && by != byID {
			p.refuse(paramOrderBy, fault.DetailNotAllowed, "must be id with afterId, which walks the list by id")
		}
	}
	if p.q.After != nil && p.values.Has(ParamPage) {
		p.refuse(ParamPage, fault.DetailNotAllowed, "must not be given with afterId or orderBy=id, which walk the list by id")
	}
}

// integer reads a whole number from 1.
func (p *parser) integer(name string, most int, into *int) {
	if text, ok := p.get(name); ok {
		param := Param{Name: name, In: fault.InQuery, Min: bound(1), Max: bound(int64(most))}
		*into = param.Integer(text, &p.details)
	}
}

// Integer reads the value of an integer parameter: digits without sign or leading
// zero, within Min and Max. It adds the fault to details.
func (p *Param) Integer(text string, details *fault.Details) int {
	if strings.Trim(text, "0123456789") != "" || len(text) > 1 && text[0] == '0' {
		details.Add(p.In, p.Name, fault.DetailFormat, "must be a whole number between %d and %d, digits only", *p.Min, *p.Max)
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || int64(n) < *p.Min || int64(n) > *p.Max {
		details.Add(p.In, p.Name, fault.DetailOutOfRange, "must be between %d and %d", *p.Min, *p.Max)
		return 0
	}
	return n
}

func (p *parser) order() {
	if text, ok := p.get(paramOrderBy); ok {
		switch i := slices.Index(p.list.orderNames(), text); {
		case i < 0:
			p.refuse(paramOrderBy, fault.DetailFormat, "must be one of %s", strings.Join(p.list.orderNames(), ", "))
		case text != byID:
			p.q.Order, p.q.Desc = p.list.Orders[i], p.list.Orders[i].Desc
		}
	}
	if text, ok := p.get(paramDirection); ok {
		text = strings.ToLower(text)
		switch p.q.Desc = text == "desc"; {
		case !p.q.Desc && text != "asc":
			p.refuse(paramDirection, fault.DetailFormat, "must be asc or desc")
		case p.q.Desc && p.q.After != nil:
			p.refuse(paramDirection, fault.DetailNotAllowed, "must be asc with afterId or orderBy=id: a walk by id is ascending")
		}
	}
}

// search reads the words to search for. A blank text means none.
func (p *parser) search() {
	text := strings.TrimSpace(p.values.Get(paramSearch))
	switch {
	case utf8.RuneCountInString(text) > maxSearch:
		p.refuse(paramSearch, fault.DetailOutOfRange, "must have at most %d characters", maxSearch)
	case len(strings.Fields(text)) > maxTokens:
		p.refuse(paramSearch, fault.DetailOutOfRange, "must have at most %d words", maxTokens)
	default:
		p.q.Search = fold.Tokens(text)
	}
}

func (p *parser) filter(f *Filter) {
	if s := spans[f.Kind]; s != nil {
		p.between(f, s)
		return
	}
	text, ok := p.get(f.Name)
	if !ok {
		return
	}
	if f.Max > 0 && strings.Count(text, ",") >= f.Max {
		p.refuse(f.Name, fault.DetailOutOfRange, "must have at most %d entries", f.Max)
		return
	}
	a, err := readers[f.Kind](f, text)
	if err != nil {
		p.refuse(f.Name, fault.DetailFormat, "%s", err.Error())
		return
	}
	p.q.given[f.Name] = a
}

// own reads the filters by own fields, whose keys and values their owner checks.
func (p *parser) own() {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		key, is := strings.CutPrefix(name, p.list.Own+"[")
		if !is {
			continue
		}
		given := p.values[name]
		if slices.ContainsFunc(given, func(text string) bool { return strings.TrimSpace(text) == "" }) {
			p.refuse(name, fault.DetailFormat, "must not be empty; %s=%s.key asks for any value", paramHas, p.list.Own)
		}
		p.q.Own = append(p.q.Own, OwnFilter{Param: name, Key: strings.TrimSuffix(key, "]"), Values: given})
		n += len(given)
	}
	if text, ok := p.get(paramHas); ok {
		for field := range strings.SplitSeq(text, ",") {
			key, is := strings.CutPrefix(field, p.list.Own+".")
			if !is || key == "" {
				p.refuse(paramHas, fault.DetailFormat, "must be one or several, comma-separated, of %s.key", p.list.Own)
			}
			p.q.Own = append(p.q.Own, OwnFilter{Param: paramHas, Key: key})
			n++
		}
	}
	if n > maxOwn {
		p.refuse(p.q.Own[0].Param, fault.DetailOutOfRange, "must be one of at most %d values of %s and %s", maxOwn, p.list.Own, paramHas)
	}
}

// between reads the two ends of a filter that has them.
func (p *parser) between(f *Filter, s *span) {
	var a argument
	low, high := s.names(f)
	for _, end := range []struct {
		name string
		into **int64
	}{{low, &a.low}, {high, &a.high}} {
		text, ok := p.get(end.name)
		if !ok {
			continue
		}
		n, err := s.parse(text)
		if err != nil {
			p.refuse(end.name, fault.DetailFormat, "%s", err.Error())
			continue
		}
		*end.into = &n
	}
	if a.low != nil && a.high != nil && *a.low > *a.high {
		p.refuse(low, fault.DetailOutOfRange, "must not be "+s.above+" %s", high)
		return
	}
	if a.low != nil || a.high != nil {
		p.q.given[f.Name] = a
	}
}
