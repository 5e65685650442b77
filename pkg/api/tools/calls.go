package tools

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

type describeInput struct {
	Kind commerce.Kind `json:"kind,omitempty" jsonschema:"The kind to describe. Absent: every kind in a sentence."`
}

type searchInput struct {
	Kind   commerce.Kind `json:"kind" jsonschema:"The kind of the records, such as order."`
	Search string        `json:"search,omitempty" jsonschema:"Up to 10 words, each of which must occur, as a part and regardless of case and accents, in the fields that describe names."`
	listInput
}

type getInput struct {
	Kind   commerce.Kind `json:"kind" jsonschema:"The kind of the record, such as order."`
	ID     string        `json:"id" jsonschema:"The id of the record, a UUID, as search answers it."`
	Fields []string      `json:"fields,omitempty" jsonschema:"The fields to answer. Absent: all."`
}

type changesInput struct {
	After string `json:"after,omitempty" jsonschema:"meta.next of the answer before, or now for a cursor of the present without changes. Absent: from the first record on."`
	Kinds string `json:"kinds,omitempty" jsonschema:"The kinds of the records, separated by commas, the same in every call. Absent: those that the credential may read."`
	Limit int    `json:"limit,omitempty" jsonschema:"Changes of the answer, 1 to 50; 20 if absent."`
}

type traceInput struct {
	ObjectID string `json:"objectId" jsonschema:"The id of a record, or of what an alert is about: a UUID."`
	Limit    int    `json:"limit,omitempty" jsonschema:"Events of the answer, 1 to 50; 20 if absent."`
}

// addRecords adds the tools that every credential gets.
func addRecords(s *mcp.Server) {
	add(s, "describe", "Tells the kinds of records that the credential may read, and of one kind its fields, filters and orders. "+
		"Ask it before the first search of a kind.", "", describe)
	add(s, "search", "Finds records of one kind by words and filters, a page at a time, and how many there are in all: meta.total. "+
		"A row has the most important fields; absent ones have no value. A change is found about a second after it was stored.", "ask with a lower limit", search)
	add(s, "get", "Answers one record by its id with all of its fields that have a value.", "name the fields that you need in fields", get)
	add(s, "changes", "Answers the records that were stored, changed or deleted after a cursor, each once, in its current state, as a row. "+
		"Go on with meta.next while meta.more is true, and later from the last.", "ask with a lower limit", changes)
}

// addHistory adds the tools of webhooks.
func addHistory(s *mcp.Server) {
	add(s, "trace", "Tells what became of a record's changes: which events came of them, which endpoint got each with what attempts, "+
		"and why another did not. Ask it why a webhook did not arrive.", "ask with a lower limit, or ask deliveries for those of the objectId", trace)
	add(s, "deliveries", "Lists the history of webhooks, one row for each event and endpoint, the newest first; trace has their attempts. "+
		"Filters: applicationId, endpointId, objectId, objectKind, eventId, type, status, createdFrom, createdTo.", "ask with a lower limit", deliveries)
}

// hidden are the fields of a kind that the caller is not shown.
func hidden(r *api.Request, kind commerce.Kind) []string {
	if r.Principal.Scopes.Has(auth.CustomersRead) {
		return nil
	}
	return kind.Personal()
}

// looksIntoHidden reports whether a parameter of the kind's list looks into what the
// caller is not shown: the rows would tell.
func looksIntoHidden(r *api.Request, kind commerce.Kind, name string) bool {
	fields := hidden(r, kind)
	field, _, _ := strings.Cut(name, "[")
	return len(fields) > 0 && (name == "search" || name == "has" || slices.Contains(fields, field))
}

// rowOf are the fields of a kind's rows.
func rowOf(kind commerce.Kind) []string { return append(kind.Columns(), "id") }

func describe(r *api.Request, in describeInput) (any, error) {
	fields, filters := map[string]string{}, map[string]string{}
	if in.Kind == "" {
		for _, kind := range commerce.Kinds() {
			if r.Principal.Scopes.Has(auth.ReadScope(kind.Plural())) {
				fields[string(kind)] = kind.Text()
			}
		}
		return map[string]any{"kinds": fields}, nil
	}
	for f := range reflect.TypeOf(commerce.New(in.Kind)).Elem().Fields() {
		fields[f.Tag.Get("json")] = f.Tag.Get("doc")
	}
	for _, name := range hidden(r, in.Kind) {
		delete(fields, name)
	}
	for _, p := range commerce.ListOf(in.Kind).Params() {
		if p.Name != "limit" && !looksIntoHidden(r, in.Kind, p.Name) { // the tool has a limit of its own
			filters[p.Name] = strings.Join(append(p.Enum, p.Description), ", ")
		}
	}
	return map[string]any{"kind": in.Kind, "fields": fields, "filters": filters}, nil
}

func search(r *api.Request, in searchInput) (any, error) {
	query, err := in.query()
	if err != nil {
		return nil, err
	}
	if in.Search != "" {
		query.Set("search", in.Search)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if looksIntoHidden(r, in.Kind, name) {
			return nil, fault.New(fault.Forbidden, "insufficient_scope",
				"%s looks into personal fields, and the credential lacks the scope customers:read; use another filter, as describe lists them", name)
		}
	}
	return askPage(r, "/api/"+in.Kind.Plural(), query, hidden(r, in.Kind), rowOf(in.Kind)...)
}

func get(r *api.Request, in getInput) (any, error) {
	record, err := askItem(r, "/api/"+in.Kind.Plural()+"/", in.ID, nil)
	if err != nil {
		return nil, err
	}
	without := hidden(r, in.Kind)
	for _, name := range in.Fields {
		if record[name] == nil || slices.Contains(without, name) {
			return nil, fault.New(fault.Invalid, fault.CodeValidation, "%s is no field that the credential sees; describe lists them", name)
		}
	}
	return record.compact(without, in.Fields...), nil
}

func changes(r *api.Request, in changesInput) (any, error) {
	query, err := listInput{Limit: in.Limit}.query()
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"after": in.After, "kinds": in.Kinds} {
		if text != "" {
			query.Set(name, text)
		}
	}
	var feed struct {
		Data []struct {
			Kind      commerce.Kind `json:"kind"`
			Op        commerce.Op   `json:"op"`
			ID        value.ID      `json:"id"`
			ChangedAt value.Time    `json:"changedAt"`
			Object    object        `json:"object,omitempty"`
		} `json:"data"`
		Meta jsontext.Value `json:"meta"`
	}
	if err := ask(r, "/api/changes", query, &feed); err != nil {
		return nil, err
	}
	for i, c := range feed.Data {
		feed.Data[i].Object = c.Object.compact(hidden(r, c.Kind), rowOf(c.Kind)...)
	}
	return feed, nil
}

func trace(r *api.Request, in traceInput) (any, error) {
	query, err := listInput{Limit: in.Limit}.query()
	if err != nil {
		return nil, err
	}
	traced, err := askItem(r, "/developers/webhooks/trace/", in.ObjectID, query)
	return traced.compact(nil), err
}

func deliveries(r *api.Request, in listInput) (any, error) {
	query, err := in.query()
	if err != nil {
		return nil, err
	}
	return askPage(r, "/developers/webhooks/events", query, []string{"organizationId", "attempts"})
}
