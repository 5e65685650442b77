package lists

import (
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Page is one page of a list.
type Page[T any] struct {
	Data []T  `json:"data" doc:"The entries of the page, in the order that was asked for."`
	Meta Meta `json:"meta" doc:"Which page it is."`
}

// Meta says which page it is. TotalPages is 0 when Total is 0.
type Meta struct {
	Page       int `json:"page" doc:"The page, counted from 1. 1 in a walk by id."`
	Limit      int `json:"limit" doc:"How many entries a page has at most."`
	Total      int `json:"total" doc:"How many entries all pages have, exactly."`
	TotalPages int `json:"totalPages" doc:"How many pages there are; 0 when there is no entry."`
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
