// Package records answers the read API: lists and single records of all
// kinds, deletions, the feed of changes, and the principal itself. An answer
// shows only records of the principal's organization and sites; any other is
// answered as one that does not exist. The views find the records of a list, and
// package commerce shapes them.
package records

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
)

// Store reads records.
type Store interface {
	// Record is strongly consistent.
	Record(ctx context.Context, org value.ID, kind commerce.Kind, id value.ID) (*commerce.Stored, error)
	// RecordsSince reads each record as it is at its least revision or later.
	RecordsSince(ctx context.Context, org value.ID, kind commerce.Kind, least map[value.ID]value.Time) (map[value.ID]*commerce.Stored, error)
	// Records reads records and tombstones, strongly consistent. What is absent is
	// not in the answer.
	Records(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error)
	// NearRecords is Records of ids in ascending order, of which it may leave out any.
	NearRecords(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID, maxBytes int) (map[value.ID]*commerce.Stored, error)
	// Activity is a time that rises before an entry after it is in a tail of the
	// organization's records or deletions; 0 before the first.
	Activity(ctx context.Context, org value.ID) (value.Time, error)
	// BeginWait notes that a request of the organization waits until then, unless
	// most of them wait now, and EndWait that it no longer does.
	BeginWait(ctx context.Context, org, request value.ID, most int, now, until value.Time) (begun bool, err error)
	EndWait(ctx context.Context, org, request value.ID) error
}

// scopeOf is the scope that reads a kind.
func scopeOf(kind commerce.Kind) auth.Scope { return auth.ReadScope(kind.Plural()) }

// item is the operation that reads one record of a kind.
func (a *area) item(kind commerce.Kind) api.Operation {
	return api.Operation{
		ID: "get" + camel(string(kind)), Method: http.MethodGet, Path: "/api/" + kind.Plural() + "/{id}", Tag: TagOf(kind),
		Summary: "Read one " + spoken(string(kind)), Access: api.Reader, Scope: scopeOf(kind), Result: commerce.New(kind),
		Description: "Answers 404 for a record that is absent, deleted, another organization's, or of a site that the credential does not cover.",
		Params:      []api.Param{api.SiteHeader(), api.SiteQuery()},
		Handle: func(r *api.Request) (*api.Response, error) {
			stored, err := a.single(r, kind)
			if err != nil {
				return nil, err
			}
			shape := commerce.AppendShape(make([]byte, 0, len(stored.Doc)+1), kind, stored.Doc, value.TimeOf(a.clock()))
			return &api.Response{Raw: shape}, nil
		},
	}
}

// single reads the record of a kind that the path names and the request may see.
func (a *area) single(r *api.Request, kind commerce.Kind) (*commerce.Stored, error) {
	found := api.Found[commerce.Stored](string(kind))
	stored, err := found(a.store.Record(r.Context(), r.Organization(), kind, r.PathID("id")))
	if err != nil {
		return nil, err
	}
	visible, err := commerce.SiteScope{Site: r.Site, Sites: r.Principal.SiteIDs}.Shows(stored)
	if err == nil && !visible {
		err = fault.Missing(string(kind))
	}
	return stored, err
}

// area holds what the operations share.
type area struct {
	store  Store
	views  Views
	clock  func() time.Time
	pause  func(context.Context, time.Duration) error
	lists  map[commerce.Kind]*index.List
	fields index.FieldReader
	gone   *index.List // the deletions
	cached *recordCache
}

// Config configures the operations.
type Config struct {
	Clock      func() time.Time
	Pause      func(context.Context, time.Duration) error // of a request that waits; nil is [pause.For]
	Lists      *index.Lists
	Fields     index.FieldReader // read by each request that filters by own fields
	CacheBytes int               // of records; 0 is 32 MiB
}

// Operations returns every operation of the read API.
func Operations(store Store, views Views, cfg Config) []api.Operation {
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 32 << 20
	}
	if cfg.Pause == nil {
		cfg.Pause = pause.For
	}
	a := &area{
		store: store, views: views, clock: cfg.Clock, pause: cfg.Pause, fields: cfg.Fields, lists: cfg.Lists.Records, gone: cfg.Lists.Deletions,
		cached: newRecordCache(cfg.CacheBytes),
	}
	operations := []api.Operation{me(), a.deletions(), a.changes(), a.productStock()}
	for _, kind := range commerce.Kinds() {
		operations = append(operations, a.list(kind), a.item(kind))
	}
	return operations
}

// TagOf is the tag of a kind's operations, such as Inventory levels.
func TagOf(kind commerce.Kind) string { return capital(spoken(kind.Plural())) }

// spoken is a kind's name or plural in words.
func spoken(name string) string { return strings.Join(commerce.Words(name), " ") }

// camel is a kind's name or plural within an operation's id, such as InventoryLevels.
func camel(name string) (id string) {
	for _, word := range commerce.Words(name) {
		id += capital(word)
	}
	return id
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
