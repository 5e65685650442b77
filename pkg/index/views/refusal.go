package views

import (
	"context"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// tooLarge answers a query that memory is too small for from the table, if it is for
// some ids, or else refuses it. The view has followed the tail: the table has all that
// the view has, and later changes come with later times.
func (c *Cache) tooLarge(ctx context.Context, v *cachedView, q columnar.Query) (lists.Answer, error) {
	list := v.cacheKey.List
	ids, ok := q.Filter.ByID()
	if !ok || list.Get == nil {
		return lists.Answer{}, c.refuse(ctx, v.cacheKey, q)
	}
	v.mu.RLock()
	syncFrom := v.syncFrom()
	v.mu.RUnlock()
	documents, err := list.Get(ctx, v.cacheKey.Org, ids)
	if err != nil {
		return lists.Answer{}, err
	}
	found := columnar.NewView(list.Schema)
	found.Apply(documents)
	return lists.Answer{Result: found.Query(q), SyncFrom: syncFrom}, nil
}

// refuse makes the fault of a query that memory is too small for.
func (c *Cache) refuse(ctx context.Context, key index.Key, q columnar.Query) error {
	c.logTooLarge(ctx, key, q, errTooLarge)
	wayOut := "give ids, or walk by id with afterId and without a filter"
	if key.List.By != index.Whole {
		time := strings.TrimSuffix(key.List.Schema.Column(key.List.On).Name, "At")
		wayOut = "narrow it by " + time + "From and " + time + "To"
	}
	return fault.New(fault.Invalid, "list_too_large", "the list is too large for this filter, search or order; %s", wayOut)
}

// logTooLarge logs what the template's alarm watches.
func (c *Cache) logTooLarge(ctx context.Context, key index.Key, q columnar.Query, cause error) {
	c.cfg.Logger.WarnContext(ctx, "a query was too large", "organizationId", key.Org, "list", key.List.Name,
		"orderBy", q.OrderBy, "words", len(q.Search), "offset", q.Offset, "memory", c.cfg.MaxBytes, "cause", cause)
}
