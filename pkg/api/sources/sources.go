// Package sources answers the operations on sources, which are shops whose webhooks
// bring records in, and takes the webhooks. A source of another organization is
// answered exactly as one that does not exist. Webhooks are the one exception to
// "without a principal nothing is served": who sends one proves by its signature
// that it is of a stored source, whose organization the records then are.
package sources

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/bounded"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

const (
	tag         = "Sources"
	sourcesPath = "/developers/sources"
	sourcePath  = sourcesPath + "/{id}"
)

// Store keeps sources, what is known of the shops' objects, and receipts. What it
// does not have is nil without an error.
type Store interface {
	// CreateSource may answer a fault limit_reached.
	CreateSource(ctx context.Context, s *source.Source, kept *idempotency.Kept) error
	Source(ctx context.Context, organization, id value.ID) (*source.Source, error)
	Sources(ctx context.Context, organization value.ID) ([]source.Source, error)
	ChangeSource(ctx context.Context, organization, id value.ID, change func(*source.Source) (*source.Source, error)) (*source.Source, error)
	DeleteSource(ctx context.Context, organization, id value.ID, check func(*source.Source) (*account.AuditEntry, error)) (bool, error)

	SourceByID(ctx context.Context, id value.ID) (*source.Source, error)
	// ChangeShopObject and ChangeShopItem store what change makes if it returns true.
	// It may be called again.
	ChangeShopObject(ctx context.Context, s *source.Source, kind commerce.Kind, id string, change func(*source.Object) bool) error
	ChangeShopItem(ctx context.Context, s *source.Source, id string, change func(*source.Item) bool) error
	CreateReceipt(ctx context.Context, s *receipt.Stored) error
}

// Queue takes the messages that bring records, for ingest.
type Queue interface {
	Send(ctx context.Context, organization, receipt value.ID, message []byte) error
}

// Box seals secrets, and opens what it sealed for the same purpose.
type Box interface {
	Seal(plain []byte, purpose string) string
	Open(text, purpose string) ([]byte, error)
}

// Sources is the list of sources.
type Sources struct {
	Data []source.WebhookSource `json:"data" nullable:"false" doc:"Every source, at most 20, in the order of their ids."`
}

// area holds what the operations share.
type area struct {
	store    Store
	queue    Queue
	box      Box
	clock    func() time.Time
	attempts *bounded.Map[sender, attempts]
}

// Operations returns every operation of this area.
func Operations(store Store, queue Queue, box Box, clock func() time.Time) []api.Operation {
	a := &area{store, queue, box, clock, bounded.New[sender, attempts](maxSenders)}
	const minting = " It takes records:write, as who knows the secret can put records in."
	all := []api.Operation{
		{
			ID: "createSource", Method: http.MethodPost, Path: sourcesPath, Summary: "Create a source",
			Description: "An organization can have 20. For WooCommerce this answer is the only one that shows the secret in full." + minting,
			Scope:       auth.DevelopersWrite, Body: source.CreateSourceDto{}, Result: source.WebhookSource{}, Status: http.StatusCreated, Tagged: true,
			Errors: []int{http.StatusConflict}, Audit: audit.SourceCreated, Handle: a.create,
		},
		{
			ID: "listSources", Method: http.MethodGet, Path: sourcesPath, Summary: "List the sources",
			Scope: auth.DevelopersRead, Result: Sources{}, Handle: a.list,
		},
		{
			ID: "getSource", Method: http.MethodGet, Path: sourcePath, Summary: "Read a source",
			Scope: auth.DevelopersRead, Result: source.WebhookSource{}, Handle: a.get,
		},
		{
			ID: "updateSource", Method: http.MethodPatch, Path: sourcePath, Summary: "Rename a source",
			Scope: auth.DevelopersWrite, Body: source.UpdateSourceDto{}, Result: source.WebhookSource{}, Tagged: true,
			Errors: []int{http.StatusConflict}, Audit: audit.SourceUpdated, Handle: a.update,
		},
		{
			ID: "deleteSource", Method: http.MethodDelete, Path: sourcePath, Summary: "Delete a source",
			Description: "Its webhooks are refused from then on. Its records stay.",
			Scope:       auth.DevelopersWrite, Status: http.StatusNoContent,
			Errors: []int{http.StatusConflict}, Audit: audit.SourceDeleted, Handle: a.remove,
		},
		{
			ID: "rotateSourceSecret", Method: http.MethodPost, Path: sourcePath + "/rotate-secret", Summary: "Give a source a new secret",
			Description: "For overlapHours webhooks that the old secret signs are taken, too, so that the shop can change at any time within. " +
				"Another rotation ends it at once." + minting,
			Scope: auth.DevelopersWrite, Params: []api.Param{api.IfMatch()}, Body: source.RotateSourceSecretDto{}, EmptyBody: true,
			Result: source.WebhookSource{}, Tagged: true,
			Errors: []int{http.StatusConflict, http.StatusPreconditionFailed}, Audit: audit.SourceSecretRotated, Handle: a.rotate,
		},
	}
	for i := range all {
		all[i].Tag, all[i].Access = tag, api.Developer
	}
	return append(all, a.receiving())
}

func (a *area) now() value.Time { return value.TimeOf(a.clock()) }

func (a *area) create(r *api.Request) (*api.Response, error) {
	if err := r.CheckHolds(auth.RecordsWrite); err != nil {
		return nil, err
	}
	s, made, err := source.New(r.Organization(), r.Body, a.box.Seal, a.now())
	if err != nil {
		return nil, err
	}
	all, err := a.store.Sources(r.Context(), r.Organization())
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(o source.Source) bool { return o.Kind == s.Kind && o.IDPrefix == s.IDPrefix }) {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "another source of the kind has the same idPrefix: shops of one system may have the same numbers")
	}
	s.ChangedBy = r.Change(s.ID, s.ID)
	return r.Create(sourcesPath+"/"+s.ID.String(), s.Shape(r.BaseURL, made), s.ETag(), func(kept *idempotency.Kept) error {
		return a.store.CreateSource(r.Context(), s, kept)
	})
}

func (a *area) list(r *api.Request) (*api.Response, error) {
	all, err := a.store.Sources(r.Context(), r.Organization())
	answer := Sources{Data: make([]source.WebhookSource, len(all))}
	for i := range all {
		answer.Data[i] = all[i].Shape(r.BaseURL, "")
	}
	return api.Answer(answer, err)
}

// found makes a source that is not there a 404.
var found = api.Found[source.Source]("source")

func (a *area) get(r *api.Request) (*api.Response, error) {
	s, err := found(a.store.Source(r.Context(), r.Organization(), r.PathID("id")))
	return answer(r, s, "", err)
}

func answer(r *api.Request, s *source.Source, made string, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return &api.Response{JSON: s.Shape(r.BaseURL, made), ETag: s.ETag()}, nil
}

// change stores what change makes of the source that If-Match names.
func (a *area) change(r *api.Request, change func(*source.Source) (*source.Source, error)) (*source.Source, error) {
	return found(a.store.ChangeSource(r.Context(), r.Organization(), r.PathID("id"), func(s *source.Source) (*source.Source, error) {
		next, err := change(s)
		if err == nil {
			err = r.CheckIfMatch(s.ETag())
			next.ChangedBy = r.Change(s.ID, s.ID)
		}
		return next, err
	}))
}

func (a *area) update(r *api.Request) (*api.Response, error) {
	s, err := a.change(r, func(s *source.Source) (*source.Source, error) { return s.Update(r.Body, a.now()) })
	return answer(r, s, "", err)
}

func (a *area) rotate(r *api.Request) (*api.Response, error) {
	if err := r.CheckHolds(auth.RecordsWrite); err != nil {
		return nil, err
	}
	var made string // by the last try, which is the one that is stored
	s, err := a.change(r, func(s *source.Source) (next *source.Source, err error) {
		next, made, err = s.Rotate(r.Body, a.box.Seal, a.now())
		return next, err
	})
	return answer(r, s, made, err)
}

func (a *area) remove(r *api.Request) (*api.Response, error) {
	deleted, err := a.store.DeleteSource(r.Context(), r.Organization(), r.PathID("id"), func(s *source.Source) (*account.AuditEntry, error) {
		return r.Change(s.ID, s.ID), r.CheckIfMatch(s.ETag())
	})
	if err == nil && !deleted {
		err = fault.Missing("source")
	}
	if err != nil {
		return nil, err
	}
	return api.NoContent()
}
