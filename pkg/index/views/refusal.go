package views

import (
	"context"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// refuse makes the fault of a query that memory is too small for.
func (c *Cache) refuse(ctx context.Context, key index.Key, q columnar.Query) error {
	c.logTooLarge(ctx, key, q, errNoRoom)
	if key.List.By == index.Whole {
		return fault.New(fault.Unavailable, "list_too_large", "the list is larger than the service has memory for; its operator has been told")
	}
	time := strings.TrimSuffix(key.List.Schema.Column(key.List.On).Name, "At")
	return fault.New(fault.Invalid, "query_too_large",
		"this filter, search, order or page is too much for a list of this size; narrow it by %sFrom and %sTo", time, time)
}

// logTooLarge logs what the template's alarm watches.
func (c *Cache) logTooLarge(ctx context.Context, key index.Key, q columnar.Query, cause error) {
	c.cfg.Logger.WarnContext(ctx, "a query was too large", "organizationId", key.Org, "list", key.List.Name,
		"orderBy", q.OrderBy, "words", len(q.Search), "offset", q.Offset, "memory", c.cfg.MaxBytes, "cause", cause)
}
