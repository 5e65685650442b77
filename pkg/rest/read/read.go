// Package read answers the read API: lists and items of the five kinds of
// record, deletions, and who is asking. Every answer shows only what the
// principal's organization has and its sites allow; what it may not see is
// as good as absent. Which records a list holds is left to the views, and
// their shape to package commerce.
package read

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/rest"
	"github.com/commerce-integration/service/pkg/value"
)

// Store reads records, strongly consistent.
type Store interface {
	Record(ctx context.Context, org value.ID, kind commerce.Kind, id value.ID) (*commerce.Stored, error)
	Records(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error)
}

// scopeOf is the scope that reads a kind.
func scopeOf(kind commerce.Kind) auth.Scope { return auth.Scope(kind.Plural() + ":read") }

// item is the operation that reads one record of a kind.
func (a *area) item(kind commerce.Kind) rest.Operation {
	return rest.Operation{
		ID: "get" + title(kind), Method: http.MethodGet, Path: "/api/" + kind.Plural() + "/{id}", Tag: tagOf(kind),
		Summary: "Read one " + string(kind), Access: rest.Reader, Scope: scopeOf(kind), Status: http.StatusOK, Result: commerce.New(kind),
		Description: "Answers 404 for a record that is absent, deleted, another organization's, or of a site that the credential does not cover.",
		Params:      []rest.Param{siteHeader(), siteQuery()},
		Handle: func(r *rest.Request) (*rest.Response, error) {
			site, err := siteOf(r)
			if err != nil {
				return nil, err
			}
			stored, err := a.store.Record(r.Context(), r.Organization(), kind, r.PathID("id"))
			if err != nil {
				return nil, err
			}
			if stored == nil {
				return nil, fault.Missing(string(kind))
			}
			visible, err := visible(stored, &r.Principal, site)
			if err != nil {
				return nil, err
			}
			if !visible {
				return nil, fault.Missing(string(kind))
			}
			shape := commerce.AppendShape(make([]byte, 0, len(stored.Doc)+1), kind, stored.Doc, value.TimeOf(a.clock()))
			return &rest.Response{Raw: shape}, nil
		},
	}
}

// visible reports whether the principal may see the record, and the site
// asked for, if one is, shows it.
func visible(s *commerce.Stored, p *auth.Principal, site *value.ID) (bool, error) {
	if p.SiteIDs == nil && site == nil {
		return true, nil
	}
	record, err := s.Record()
	if err != nil {
		return false, err
	}
	own := record.Head().SiteID
	covered := func(sites []value.ID) bool {
		switch {
		case s.Kind == commerce.KindProduct:
			return s.SiteIDs == nil || slices.ContainsFunc(s.SiteIDs, func(id value.ID) bool { return slices.Contains(sites, id) })
		case own == nil:
			return s.Kind == commerce.KindCategory
		}
		return slices.Contains(sites, *own)
	}
	return (p.SiteIDs == nil || covered(p.SiteIDs)) && (site == nil || covered([]value.ID{*site})), nil
}

func siteHeader() rest.Param {
	return rest.Param{Name: "X-Site-Id", In: fault.InHeader, Type: "string", Format: "uuid", Description: "Only what this site shows. The same as siteId."}
}

func siteQuery() rest.Param {
	return rest.Param{Name: "siteId", In: fault.InQuery, Type: "string", Format: "uuid", Description: "Only what this site shows."}
}

// siteOf reads the site that a request asks for by header, query or both.
func siteOf(r *rest.Request) (*value.ID, error) {
	var site *value.ID
	for _, given := range []struct{ in, name, text string }{
		{fault.InHeader, "X-Site-Id", r.Header.Get("X-Site-Id")},
		{fault.InQuery, "siteId", r.Query.Get("siteId")},
	} {
		if given.text == "" {
			continue
		}
		id, err := value.ParseID(given.text)
		if err != nil {
			return nil, fault.Field(given.in, given.name, fault.DetailFormat, "%s", err.Error())
		}
		if site != nil && *site != id {
			return nil, fault.Field(fault.InQuery, "siteId", fault.DetailNotAllowed, "must be the site of X-Site-Id; send one of them")
		}
		site = &id
	}
	return site, nil
}

// area holds what the operations share.
type area struct {
	store  Store
	views  Views
	clock  func() time.Time
	lists  Lists
	cached *recordCache
}

func title(kind commerce.Kind) string {
	return string(kind[0]-'a'+'A') + string(kind[1:])
}

func tagOf(kind commerce.Kind) string {
	plural := kind.Plural()
	return string(plural[0]-'a'+'A') + plural[1:]
}
