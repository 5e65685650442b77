package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Page is one page of a list, and Meta says which.
type (
	Page[T any] = lists.Page[T]
	Meta        = lists.Meta
)

// AnswerPage answers the page that the request asks of its operation's list.
// total counts the entries of all pages. last is the id of the page's last
// entry, from which a walk by id goes on; nil when the walk ends.
func AnswerPage[T any](r *Request, data []T, total int, last *value.ID) (*Response, error) {
	return &Response{JSON: Page[T]{Data: data, Meta: r.PageMeta(total)}, Header: r.PageLinks(total, last)}, nil
}

// AnswerIndexed is AnswerPage for a list that an index answers.
func AnswerIndexed[T any](r *Request, data []T, answer lists.Answer) (*Response, error) {
	return &Response{JSON: Page[T]{Data: data, Meta: r.PageMeta(answer.Total)}, Header: r.IndexedHeader(answer, LastOf(r.List, answer.Hits))}, nil
}

// maxLeftOut is how many entries that are not shown a page passes over at most.
const maxLeftOut = 5000

// FullPage answers the page that the request asks for of a list that an index
// answers, full unless the list ends with it: for a client that reads page by page
// the first one that is not full is the end. query asks the index for so many
// hits from the page's start; show reads some, and leaves out those that were
// deleted, or left the list, after the index knew them. Further hits take
// their places. Each query begins at the page's start again, because the index may
// have followed meanwhile: hits counted by the view before would skip others.
func FullPage[T any](
	r *Request, query func(limit int) (lists.Answer, error), show func([]columnar.Hit) ([]columnar.Hit, []T, error),
) (page []T, answer lists.Answer, err error) {
	full := r.List.Limit
	for limit := full; ; {
		if answer, err = query(limit); err != nil {
			return nil, answer, err
		}
		hits, read := answer.Hits, 0
		answer.Hits, page = nil, []T{}
		for read < len(hits) && len(page) < full {
			some := hits[read:min(read+lists.MaxLimit, len(hits))]
			shown, entries, err := show(some)
			if err != nil {
				return nil, answer, err
			}
			answer.Hits, page, read = append(answer.Hits, shown...), append(page, entries...), read+len(some)
		}
		if len(page) >= full || len(hits) < limit {
			answer.Hits, page = answer.Hits[:min(full, len(page))], page[:min(full, len(page))]
			return page, answer, nil
		}
		leftOut := read - len(page)
		if leftOut > maxLeftOut {
			return nil, answer, fault.Busy(fmt.Errorf("%d entries of the list are gone and its index still has them", leftOut))
		}
		limit = full + 2*leftOut
	}
}

// IndexedHeader is the header of a page that an index answers: its links, as
// PageLinks makes them, and, on the first page of a list or walk, the time from which
// to ask next.
func (r *Request) IndexedHeader(answer lists.Answer, last *value.ID) http.Header {
	h := r.PageLinks(answer.Total, last)
	if r.List.Page == 1 && !r.continuesWalk() {
		h.Set(syncHeader, answer.SyncFrom.String())
	}
	return h
}

// Headers that say how a client goes on: with a list from a time, in the feed of
// changes behind a cursor.
const (
	syncHeader   = "X-Sync-From"
	CursorHeader = "X-Next-Cursor"
)

// ReadsNow reports whether a list is to be read as it is now: when the request
// says Cache-Control: no-cache, and on each further page of a walk by id. Such
// a page thus shows all that its first page could see, whichever instance
// answers it, so that the first page's X-Sync-From holds for the whole walk.
func (r *Request) ReadsNow() bool {
	for directive := range strings.SplitSeq(strings.Join(r.Header.Values("Cache-Control"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(directive), "no-cache") {
			return true
		}
	}
	return r.continuesWalk()
}

func (r *Request) continuesWalk() bool { return r.List.After != nil && !r.List.After.IsZero() }

// nowHeader documents the header that [Request.ReadsNow] reads.
func nowHeader() Param {
	return Param{
		Name: "Cache-Control", In: fault.InHeader, Type: "string",
		Description: "With no-cache the list reads its index at the time of the request; otherwise it may be up to a second behind.",
	}
}

// LastOf is the id of the last hit; nil when the page is not full, so that a
// walk by id ends there.
func LastOf(q *lists.Query, hits []columnar.Hit) *value.ID {
	if len(hits) < q.Limit {
		return nil
	}
	id := value.ID(hits[len(hits)-1].ID)
	return &id
}

// PageMeta describes the page that the request asks for, out of total entries.
func (r *Request) PageMeta(total int) Meta {
	q := r.List
	return Meta{Page: q.Page, Limit: q.Limit, Total: total, TotalPages: (total + q.Limit - 1) / q.Limit}
}

// PageLinks makes the Link header (RFC 8288) with rel first, prev, next and
// last, as far as they exist. In a walk by id there are only first and next.
func (r *Request) PageLinks(total int, last *value.ID) http.Header {
	var links []string
	query := r.linkedQuery(lists.ParamPage, lists.ParamAfterID)
	link := func(rel, name, text string) {
		links = append(links, "<"+r.BaseURL+r.Path()+"?"+query+name+"="+text+`>; rel="`+rel+`"`)
	}
	page := func(rel string, n int) { link(rel, lists.ParamPage, strconv.Itoa(n)) }
	if r.List.After != nil {
		link("first", lists.ParamAfterID, value.ID{}.String())
		if last != nil {
			link("next", lists.ParamAfterID, last.String())
		}
	} else {
		end := max(1, r.PageMeta(total).TotalPages)
		page("first", 1)
		if r.List.Page > 1 {
			page("prev", min(r.List.Page-1, end))
		}
		if r.List.Page < end {
			page("next", r.List.Page+1)
		}
		page("last", end)
	}
	return http.Header{"Link": {strings.Join(links, ", ")}}
}

// LinkTo is the URL of the request with another value of a parameter.
func (r *Request) LinkTo(name, text string) string {
	return r.BaseURL + r.Path() + "?" + r.linkedQuery(name) + name + "=" + text
}

// linkedQuery is the part of the query string that all pages share.
func (r *Request) linkedQuery(own ...string) string {
	kept := make(url.Values, len(r.Query))
	for name, given := range r.Query {
		if !slices.Contains(own, name) {
			kept[name] = given
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return kept.Encode() + "&"
}
