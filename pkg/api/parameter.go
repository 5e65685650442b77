package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// arguments are the values of an operation's query parameters by their names.
type arguments struct {
	numbers map[string]int
	ids     map[string]value.ID
	times   map[string]value.Time
}

// arguments reads the parameters as the operation declares them. A list reads its
// own, and the parameters of sites are read before. The fault names each that is wrong.
func (op *Operation) arguments(query url.Values) (*arguments, error) {
	a := &arguments{map[string]int{}, map[string]value.ID{}, map[string]value.Time{}}
	if op.List != nil {
		return a, nil
	}
	var details fault.Details
	for i := range op.Params {
		p := &op.Params[i]
		if text := cmp.Or(query.Get(p.Name), p.Default); p.In == fault.InQuery && p.Name != siteQuery && text != "" {
			a.read(p, text, &details)
		}
	}
	return a, details.Err()
}

func (a *arguments) read(p *Param, text string, details *fault.Details) {
	var err error
	switch {
	case p.Type == "integer":
		a.numbers[p.Name] = p.Integer(text, details)
	case p.Format == "uuid":
		a.ids[p.Name], err = value.ParseID(text)
	case p.Format == "date-time":
		a.times[p.Name], err = value.ParseBound(text)
	case p.Enum == nil:
	case p.Multi && slices.ContainsFunc(strings.Split(text, ","), func(word string) bool { return !slices.Contains(p.Enum, word) }):
		err = fmt.Errorf("must be one or several, comma-separated, of %s", strings.Join(p.Enum, ", "))
	case !p.Multi && !slices.Contains(p.Enum, text):
		err = fmt.Errorf("must be one of %s", strings.Join(p.Enum, ", "))
	}
	if err != nil {
		details.Add(p.In, p.Name, fault.DetailFormat, "%s", err.Error())
	}
}

// Number returns an integer of the query, or its default.
func (r *Request) Number(name string) int { return r.arguments.numbers[name] }

// ID returns a UUID of the query, and whether it is given.
func (r *Request) ID(name string) (id value.ID, given bool) {
	id, given = r.arguments.ids[name]
	return id, given
}

// Time returns a time of the query, and whether it is given.
func (r *Request) Time(name string) (at value.Time, given bool) {
	at, given = r.arguments.times[name]
	return at, given
}
