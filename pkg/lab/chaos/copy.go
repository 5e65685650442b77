package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// recordCopy is an integrator's copy of an organization's records: it knows
// nothing but what the lists and the deletions show from X-Sync-From on.
type recordCopy struct {
	of      *tenant
	from    map[string]string         // by list: the X-Sync-From of the last complete read
	records map[value.ID]copiedRecord // or their deletions
	read    int                       // entries so far
}

// copiedRecord is a record, or its deletion, as a list shows it.
type copiedRecord struct {
	ID        value.ID   `json:"id"`
	UpdatedAt value.Time `json:"updatedAt"`
	DeletedAt value.Time `json:"deletedAt"`
}

func (c copiedRecord) at() value.Time { return max(c.UpdatedAt, c.DeletedAt) }

func newCopy(of *tenant) *recordCopy {
	return &recordCopy{of: of, from: map[string]string{}, records: map[value.ID]copiedRecord{}}
}

// follow keeps the copies up to date until the context is done. What fails is
// read again.
func (r *run) follow(ctx context.Context) {
	const interval = 2 * time.Second // within the rate limit of a user
	for pause.For(ctx, interval) == nil {
		for _, c := range r.copies {
			_ = c.sync(ctx)
		}
		for _, c := range r.feeds {
			_ = c.sync(ctx)
		}
	}
}

// sync reads what is new in each list.
func (c *recordCopy) sync(ctx context.Context) error {
	for _, kind := range commerce.Kinds() {
		if err := c.syncList(ctx, "/api/"+kind.Plural()+"?updatedFrom="); err != nil {
			return err
		}
	}
	return c.syncList(ctx, "/api/deletions?deletedFrom=")
}

// syncList walks through what is new in a list.
func (c *recordCopy) syncList(ctx context.Context, list string) error {
	from, next := c.from[list], ""
	if from == "" {
		from = value.Time(0).String()
	}
	for after, more := (value.ID{}), true; more; {
		var page struct {
			Data []copiedRecord `json:"data"`
			Meta struct {
				Limit int `json:"limit"`
			} `json:"meta"`
		}
		header, err := c.of.Read(ctx, list+from+"&limit=100&afterId="+after.String(), &page)
		if err != nil {
			return fmt.Errorf("read %s: %w", list, err)
		}
		if after.IsZero() {
			next = header.Get("X-Sync-From")
		}
		for _, found := range page.Data {
			if after = found.ID; found.at() > c.records[found.ID].at() {
				c.records[found.ID] = found
			}
		}
		c.read += len(page.Data)
		more = len(page.Data) == page.Meta.Limit
	}
	c.from[list] = next
	return nil
}

// live are the records of the copy, with their times.
func (c *recordCopy) live() map[value.ID]value.Time {
	live := map[value.ID]value.Time{}
	for id, found := range c.records {
		if found.DeletedAt == 0 {
			live[id] = found.UpdatedAt
		}
	}
	return live
}
