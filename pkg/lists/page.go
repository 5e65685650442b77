package lists

import (
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Page is one page of a list.
type Page[T any] struct {
	Data []T  `json:"data" doc:"The entries of the page, in the requested order."`
	Meta Meta `json:"meta" doc:"The page."`
}

// Meta says which page it is. TotalPages is 0 when Total is 0.
type Meta struct {
	Page       int `json:"page" doc:"The page, counted from 1. 1 in a walk by id."`
	Limit      int `json:"limit" doc:"The number of entries on a full page."`
	Total      int `json:"total" doc:"The exact number of entries on all pages."`
	TotalPages int `json:"totalPages" doc:"The number of pages; 0 if there is no entry."`
}

// Answer is what a list's index answers to a query.
type Answer struct {
	columnar.Result
	// SyncFrom is the time for the list's [Visible] filter with which the next
	// query finds all that this one could not see: whatever becomes visible
	// after the answer does so at this time or later.
	SyncFrom value.Time
}

// HitIDs are the ids of hits, in their order.
func HitIDs(hits []columnar.Hit) []value.ID {
	ids := make([]value.ID, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	return ids
}
