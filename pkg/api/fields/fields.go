// Package fields answers the operations on the fields of its own that an organization
// declares, so that lists can be filtered by them. It tells which of them the lists have
// by now; package index builds lists with new ones.
package fields

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
)

const path = "/developers/index/fields"

// Store keeps the fields of organizations, and the lists.
type Store interface {
	index.Reader
	index.FieldReader
	// ChangeFields stores what change makes of the fields, which has the next version
	// unless they stay, and returns them.
	ChangeFields(ctx context.Context, org value.ID, change func(commerce.Fields) (commerce.Fields, error)) (commerce.Fields, error)
	// RequestJob requests a job of the list that starts at due or later.
	RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error
}

// Status says whether a list can be filtered by a field.
type Status string

// The statuses.
const (
	Ready    Status = "READY"
	Building Status = "BUILDING"
)

// Values lists what the type accepts.
func (Status) Values() []string { return []string{string(Ready), string(Building)} }

// IndexFields are the declared fields: the answer, and the input of a change.
type IndexFields struct {
	Fields *[]IndexField `json:"fields" nullable:"false" doc:"The declared fields, at most 32 of a kind."`
}

// IndexField is one declared field.
type IndexField struct {
	Kind   commerce.Kind      `json:"kind" doc:"The kind of records: product, order, customer or invoice."`
	Key    string             `json:"key" doc:"The key in the attributes of products, or the metadata of the others: 1 to 64 characters, no bracket or comma."`
	Type   commerce.FieldType `json:"type" doc:"The type of the values that are found: TEXT of at most 255 characters, NUMBER or BOOLEAN."`
	Status *Status            `json:"status" required:"false" nullable:"false" doc:"READY, or BUILDING while the list is built with it. Ignored in a request."`
}

type area struct {
	store Store
	lists *index.Lists
	clock func() time.Time
}

// Operations returns the operations of this area.
func Operations(store Store, lists *index.Lists, clock func() time.Time) []api.Operation {
	a := &area{store, lists, clock}
	operations := []api.Operation{
		{
			ID: "getIndexFields", Method: http.MethodGet, Summary: "Read the fields that lists can be filtered by", Handle: a.get,
			Description: "The keys of attributes and metadata that the organization has declared, and whether the lists have them by now.",
		},
		{
			ID: "setIndexFields", Method: http.MethodPut, Summary: "Set the fields that lists can be filtered by", Handle: a.set,
			Description: "Replaces all fields. A new one, or one of another type, is BUILDING for some minutes, while its list is built anew from the records beside the " +
				"present one: requests that filter by it get 503. 409 for another new one meanwhile. A field that is left out is refused within a second. " +
				"The entity tag also changes with the status; If-Match does not compare that part.",
			Params: []api.Param{api.IfMatch()}, Body: IndexFields{}, Tagged: true, Errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
		},
	}
	for i := range operations {
		op := &operations[i]
		op.Path, op.Tag, op.Access, op.Scope, op.Result = path, "Index", api.Developer, auth.DevelopersAdmin, IndexFields{}
	}
	return operations
}

func (a *area) get(r *api.Request) (*api.Response, error) {
	fields, err := a.store.Fields(r.Context(), r.Organization())
	if err != nil {
		return nil, err
	}
	return a.answer(r, fields)
}

func (a *area) set(r *api.Request) (*api.Response, error) {
	wanted, err := parse(r.Body)
	if err != nil {
		return nil, err
	}
	fields, err := a.store.ChangeFields(r.Context(), r.Organization(), func(fields commerce.Fields) (commerce.Fields, error) {
		if err := r.CheckIfMatchPrefix(etag(fields, nil)); err != nil {
			return fields, err
		}
		next, added := fields.Declare(wanted, value.TimeOf(a.clock()))
		if !added {
			return next, nil
		}
		building, err := a.building(r, fields)
		if err == nil && len(building) > 0 {
			err = fault.New(fault.Conflict, fault.CodeConflict, "lists are being built with fields that were declared before; wait until each is READY")
		}
		return next, err
	})
	if err != nil {
		return nil, err
	}
	return a.answer(r, fields)
}

// parse reads the body of a change.
func parse(body []byte) ([]commerce.Field, error) {
	var dto IndexFields
	if err := strictjson.Unmarshal(body, &dto); err != nil {
		return nil, err
	}
	if dto.Fields == nil {
		return nil, fault.Field(fault.InBody, "fields", fault.DetailRequired, "is required")
	}
	var details fault.Details
	fields, known, perKind := []commerce.Field{}, map[commerce.Field]bool{}, map[commerce.Kind]int{}
	for i, f := range *dto.Fields {
		at := fmt.Sprintf("fields[%d].", i)
		field := commerce.Field{Kind: f.Kind, Key: f.Key, Type: f.Type}
		field.Check(at, &details)
		same := commerce.Field{Kind: f.Kind, Key: f.Key}
		if known[same] {
			details.Add(fault.InBody, at+"key", fault.DetailDuplicate, "must be given once for a kind")
		}
		known[same] = true
		if perKind[f.Kind]++; perKind[f.Kind] == commerce.MaxFields+1 {
			details.Add(fault.InBody, "fields", fault.DetailOutOfRange, "must have at most %d entries of a kind", commerce.MaxFields)
		}
		fields = append(fields, field)
	}
	return fields, details.Err()
}

// building returns the kinds whose lists lack a field, with the greatest number that they
// have. No field is declared while another is being built, so all but the last are.
func (a *area) building(r *api.Request, fields commerce.Fields) (map[commerce.Kind]int, error) {
	building := map[commerce.Kind]int{}
	for _, kind := range commerce.Kinds() {
		if fields.Newest(kind) <= fields.Before {
			continue
		}
		x := index.Index{Key: index.Key{Org: r.Organization(), List: a.lists.Records[kind]}, Reader: a.store}
		built, err := x.BuiltFields(r.Context())
		if err != nil {
			return nil, err
		}
		if built = max(built, fields.Before); built < fields.Newest(kind) {
			building[kind] = built
		}
	}
	return building, nil
}

// answer shows the fields and has their lists built: also when the request that declared
// them could not.
func (a *area) answer(r *api.Request, fields commerce.Fields) (*api.Response, error) {
	building, err := a.building(r, fields)
	if err != nil {
		return nil, err
	}
	for kind := range building {
		if err := a.store.RequestJob(r.Context(), r.Organization(), kind.Plural(), fields.KnownAt()); err != nil {
			return nil, err
		}
	}
	shown := []IndexField{}
	for _, f := range fields.Fields {
		status := Ready
		if built, is := building[f.Kind]; is && f.Number > built {
			status = Building
		}
		shown = append(shown, IndexField{Kind: f.Kind, Key: f.Key, Type: f.Type, Status: &status})
	}
	return &api.Response{JSON: IndexFields{&shown}, ETag: etag(fields, building)}, nil
}

// etag names the fields and, behind the dot, which are being built.
func etag(fields commerce.Fields, building map[commerce.Kind]int) string {
	return `"` + strconv.FormatUint(fields.Version, 10) + "." + strconv.Itoa(len(building)) + `"`
}
