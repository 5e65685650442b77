package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// feedTarget is how many changes a client is to catch up on in a second: a
// million in a minute.
const feedTarget = 1_000_000 / 60

// feed is the section of the feed of changes: how fast one client catches up,
// and what it pays while nothing changes.
func (b *bench) feed(ctx context.Context) error {
	s, err := b.stocked(ctx)
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("The feed, %s products, one client", thousands(s.products)), "a second", "in all", "CPU here + table", "read units")
	t.note = "From the first request, with 1,000 changes in an answer, each record read strongly consistent; CPU and units are those of one change."
	var after string
	var changes int
	used, started := workload.OwnCPU(), time.Now()
	uses, err := b.metering(func() error {
		_, err := b.labelled("feed", func() (err error) {
			after, changes, err = s.follow(ctx, "")
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	took, cpu, n := time.Since(started), workload.OwnCPU().Since(used), float64(max(1, changes))
	if changes < s.products {
		return fmt.Errorf("the feed has %d changes of %d products", changes, s.products)
	}
	t.add("caught up from the beginning", fmt.Sprintf("≥ %s/s", thousands(feedTarget)), thousands(int(n/took.Seconds())), fmt.Sprintf("%.1f s", took.Seconds()),
		fmt.Sprintf("%.0f + %.0f µs", float64(cpu.Own.Microseconds())/n, float64(cpu.Table.Microseconds())/n), amount(total(share("", uses, n, requestKinds()...).reads)))
	return b.emptyPolls(ctx, s, after)
}

// emptyPolls measures requests that find nothing new, just after the last change
// and later.
func (b *bench) emptyPolls(ctx context.Context, s *shop, after string) error {
	t := b.table("Read units of an answer without a change", "read units", "of them", "write units", "of them")
	t.note = "Within 40 s of the organization's last change an instance looks at each list, at most once a second for all its requests together; later, at the time of that change alone."
	const polls = 10
	for _, row := range []struct {
		name   string
		before time.Duration // from the row above, or the last change, to a first request that is not measured
		query  string
		every  time.Duration
		polls  int
	}{
		{"at once, one request a second", 0, "", time.Second, polls},
		{"at once, ten requests a second", 0, "", time.Second / 10, 5 * polls},
		{"later, one request a second", b.Quiet, "", time.Second, polls},
		{"later, wait=10", 0, "&wait=10", 0, 1},
	} {
		poll := func(before time.Duration) error {
			if err := pause.For(ctx, before); err != nil {
				return err
			}
			next, changes, err := s.follow(ctx, after+row.query)
			if err != nil || changes > 0 {
				return fmt.Errorf("%d changes where nothing changed, error %w", changes, err)
			}
			after = next
			return nil
		}
		if row.before > 0 {
			if err := poll(row.before); err != nil {
				return err
			}
		}
		uses, err := b.metering(func() error {
			for range row.polls {
				if err := poll(row.every); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.keep(t, share(row.name, uses, float64(row.polls), requestKinds()...))
	}
	return nil
}

// follow reads the feed from a cursor until there is no more for now, and
// returns the next cursor and how many changes there were.
func (s *shop) follow(ctx context.Context, after string) (next string, changes int, err error) {
	for next = after; ; {
		var page struct {
			Data []jsontext.Value `json:"data"`
			Meta struct {
				Next string `json:"next"`
				More bool   `json:"more"`
			} `json:"meta"`
		}
		path := "/api/changes?limit=1000"
		if next != "" {
			path += "&after=" + next
		}
		if err := s.api.Get(ctx, path, &page); err != nil {
			return next, changes, fmt.Errorf("read the feed: %w", err)
		}
		changes += len(page.Data)
		if next = page.Meta.Next; !page.Meta.More {
			return next, changes, nil
		}
	}
}
