package lists

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/value"
)

// Page is one page of a list.
type Page[T any] struct {
	Data []T  `json:"data"`
	Meta Meta `json:"meta"`
}

// Meta says which page it is. TotalPages is 0 when Total is 0.
type Meta struct {
	Page       int `json:"page"`
	Limit      int `json:"limit"`
	Total      int `json:"total"`
	TotalPages int `json:"totalPages"`
}

// Meta describes the page that answers the query when total entries hold.
func (q *Query) Meta(total int) Meta {
	return Meta{Page: q.Page, Limit: q.Limit, Total: total, TotalPages: (total + q.Limit - 1) / q.Limit}
}

// Links is the value of the Link header (RFC 8288) with rel first, prev,
// next and last, as far as they exist. self is the list's URL without a
// query string. In a walk by id there are first and next only; last is the
// id of the answer's last entry, nil when the walk ends.
func (q *Query) Links(self string, total int, last *value.ID) string {
	if q.After != nil {
		links := []string{q.link(self, paramAfterID, value.ID{}.String(), "first")}
		if last != nil {
			links = append(links, q.link(self, paramAfterID, last.String(), "next"))
		}
		return strings.Join(links, ", ")
	}
	end := max(1, q.Meta(total).TotalPages)
	page := func(n int, rel string) string { return q.link(self, paramPage, strconv.Itoa(n), rel) }
	links := []string{page(1, "first")}
	if q.Page > 1 {
		links = append(links, page(min(q.Page-1, end), "prev"))
	}
	if q.Page < end {
		links = append(links, page(q.Page+1, "next"))
	}
	return strings.Join(append(links, page(end, "last")), ", ")
}

func (q *Query) link(self, name, text, rel string) string {
	var b strings.Builder
	b.WriteString("<" + self + "?")
	if q.raw != "" {
		b.WriteString(q.raw + "&")
	}
	b.WriteString(name + "=" + text + `>; rel="` + rel + `"`)
	return b.String()
}

// linked is what the links between pages repeat of a query string.
func linked(values url.Values) string {
	kept := make(url.Values, len(values))
	for name, given := range values {
		if name != paramPage && name != paramAfterID {
			kept[name] = given
		}
	}
	return kept.Encode()
}
