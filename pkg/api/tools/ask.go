package tools

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
)

// ask reads what an operation of the API answers.
func ask(r *api.Request, path string, query url.Values, into any) error {
	body, err := r.Ask(path, query)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer of %s: %w", path, err)
	}
	return nil
}

// askPage asks for a page of rows, and leaves out what is hidden, and all but the named
// fields where some are.
func askPage(r *api.Request, path string, query url.Values, hidden []string, names ...string) (any, error) {
	var p struct {
		Data []object       `json:"data"`
		Meta jsontext.Value `json:"meta"`
	}
	err := ask(r, path, query, &p)
	for i, row := range p.Data {
		p.Data[i] = row.compact(hidden, names...)
	}
	return p, err
}

// askItem is ask for the thing with the id, which names no other path.
func askItem(r *api.Request, path, id string, query url.Values) (item object, err error) {
	parsed, err := value.ParseID(id)
	if err != nil {
		return nil, fault.New(fault.Invalid, fault.CodeValidation, "the id %s", err)
	}
	return item, ask(r, path+parsed.String(), query, &item)
}

// refusal is an error in the form of the API's errors.
func refusal(r *api.Request, err error) []byte {
	problem, header := api.ProblemOf(err, r.RequestID)
	text, _ := json.Marshal(problem, jsontext.AllowInvalidUTF8(true)) // strings and numbers do not fail
	if wait := header.Get("Retry-After"); wait != "" {
		text = append(text, "\nRetry-After: "+wait...)
	}
	return text
}

// listInput asks for a page of a list.
type listInput struct {
	Filters map[string]string `json:"filters,omitempty" jsonschema:"Filters and orders by name, such as status, createdFrom or orderBy, each as text. Several values of one are separated by commas."`
	Page    int               `json:"page,omitempty" jsonschema:"The page, from 1."`
	Limit   int               `json:"limit,omitempty" jsonschema:"Rows of the answer, 1 to 50; 20 if absent."`
}

// maxRows is the most rows of an answer.
const maxRows = 50

func (in listInput) query() (url.Values, error) {
	query := url.Values{}
	for name, text := range in.Filters {
		query.Set(name, text)
	}
	query.Set("limit", strconv.Itoa(cmp.Or(in.Limit, lists.DefaultLimit)))
	if in.Page != 0 {
		query.Set(lists.ParamPage, strconv.Itoa(in.Page))
	}
	if in.Limit > maxRows {
		return nil, fault.New(fault.Invalid, fault.CodeValidation, "limit must be between 1 and %d", maxRows)
	}
	return query, nil
}

// object is a JSON object whose values stay as they were written, amounts above all.
type object map[string]jsontext.Value

// compact leaves out nulls and the fields that are hidden, and keeps of the rest
// those with the names, or all where none is given.
func (o object) compact(hidden []string, names ...string) object {
	out := object{}
	for name, v := range o {
		if v.Kind() != 'n' && !slices.Contains(hidden, name) && (len(names) == 0 || slices.Contains(names, name)) {
			out[name] = withoutNulls(v)
		}
	}
	return out
}

// withoutNulls leaves out the fields that are null, however deep they are.
func withoutNulls(v jsontext.Value) jsontext.Value {
	var o object
	var entries []jsontext.Value
	switch { // it is valid JSON, of the API
	case v.Kind() == '{' && json.Unmarshal(v, &o) == nil:
		v, _ = json.Marshal(o.compact(nil), json.Deterministic(true))
	case v.Kind() == '[' && json.Unmarshal(v, &entries) == nil:
		for i := range entries {
			entries[i] = withoutNulls(entries[i])
		}
		v, _ = json.Marshal(entries)
	}
	return v
}
