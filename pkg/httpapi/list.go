package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
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
	query := r.linkedQuery()
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

// linkedQuery is the part of the query string that all pages share.
func (r *Request) linkedQuery() string {
	kept := make(url.Values, len(r.Query))
	for name, given := range r.Query {
		if name != lists.ParamPage && name != lists.ParamAfterID {
			kept[name] = given
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return kept.Encode() + "&"
}
