package chaos

import (
	"context"
	"maps"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// feedCopy is an integrator's copy of an organization's records by the feed of changes: it applies what comes in the
// order in which it comes.
type feedCopy struct {
	of         *tenant
	after      string                  // the cursor
	records    map[value.ID]value.Time // with their times
	changed    map[value.ID]value.Time // the time of each record's last change
	disordered []value.ID              // records of which an earlier change came after a later one
}

func newFeedCopy(of *tenant) *feedCopy {
	return &feedCopy{of: of, records: map[value.ID]value.Time{}, changed: map[value.ID]value.Time{}}
}

// feedLate is how late a change may be in the feed where clocks differ by more than some seconds.
const feedLate = 10 * time.Minute

// readFeeds reads the feeds to their ends. Where clocks differ, it reads until the feeds have every record, or until the
// latest change must be in them.
func (r *run) readFeeds(ctx context.Context, e *evidence) error {
	end := time.Now()
	if r.Clocks > 0 {
		end = end.Add(feedLate + r.Clocks)
	}
	for {
		clear(e.fed)
		e.disordered = nil
		for _, c := range r.feeds {
			if err := c.sync(ctx); err != nil {
				return err
			}
			maps.Copy(e.fed, c.records)
			e.disordered = append(e.disordered, c.disordered...)
		}
		if maps.Equal(e.fed, e.records) || time.Now().After(end) {
			return nil
		}
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// sync reads new changes.
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
		if err := c.of.Read(ctx, path, &page); err != nil {
			return err
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
		c.after, more = page.Meta.Next, page.Meta.More
	}
	return nil
}
