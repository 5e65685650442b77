package chaos

import (
	"context"
	"fmt"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// feedCopy is an integrator's copy of an organization's records by the feed of
// changes: it applies what comes in the order in which it comes.
type feedCopy struct {
	of         *tenant
	after      string                  // the cursor
	records    map[value.ID]value.Time // with their times
	changed    map[value.ID]value.Time // the time of each record's last change
	read       int                     // changes so far
	disordered []value.ID              // records of which an earlier change came after a later one
}

func newFeedCopy(of *tenant) *feedCopy {
	return &feedCopy{of: of, records: map[value.ID]value.Time{}, changed: map[value.ID]value.Time{}}
}

// sync reads what is new.
func (c *feedCopy) sync(ctx context.Context) error {
	for more := true; more; {
		var page struct {
			Data []struct {
				ID        value.ID    `json:"id"`
				Op        commerce.Op `json:"op"`
				ChangedAt value.Time  `json:"changedAt"`
			} `json:"data"`
			Meta struct {
				Next string `json:"next"`
				More bool   `json:"more"`
			} `json:"meta"`
		}
		path := "/api/changes?limit=100"
		if c.after != "" {
			path += "&after=" + c.after
		}
		if _, err := c.of.Read(ctx, path, &page); err != nil {
			return fmt.Errorf("read the feed: %w", err)
		}
		for _, change := range page.Data {
			if change.ChangedAt < c.changed[change.ID] {
				c.disordered = append(c.disordered, change.ID)
			}
			c.changed[change.ID] = change.ChangedAt
			if delete(c.records, change.ID); change.Op == commerce.OpPut {
				c.records[change.ID] = change.ChangedAt
			}
		}
		c.read += len(page.Data)
		c.after, more = page.Meta.Next, page.Meta.More
	}
	return nil
}
