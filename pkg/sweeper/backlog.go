package sweeper

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// everything is the number of rows of work without a bound but its time.
	everything = math.MaxInt
	// stepSize is the rows that are found, changed and sent at a time.
	stepSize = 500
	// readSize is the rows that one call reads, and rowReaders the calls made
	// at a time.
	readSize   = 100
	rowReaders = 4
	// writeSize is the rows that are written together, rowWriters how often at
	// a time, and failures how often that may fail before the rest of a page is
	// left for later.
	writeSize  = 50
	rowWriters = 4
	failures   = 2
)

// Rows finds the rows of an endpoint. Held are those that its circuit holds,
// which are among those that Unsent finds.
type Rows interface {
	Unsent(ctx context.Context, org, endpoint value.ID, since, until value.Time, cursor string, limit int) ([]webhook.UnsentDelivery, error)
	Held(ctx context.Context, org, endpoint value.ID, cursor string, limit int) ([]webhook.UnsentDelivery, error)
	Deliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error)
}

// RowWriter changes rows. PutRow fails with [fault.ErrChanged] when somebody
// else was faster; RecordOutcomes names the rows of which that is true, and
// has written none.
type RowWriter interface {
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
	RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, tallies []webhook.CounterShardWrite) (*webhook.WriteConflict, error)
}

// Recoveries keeps recoveries. PutRecovery fails with [fault.ErrChanged] when
// somebody else was faster.
type Recoveries interface {
	Recovery(ctx context.Context, org, endpoint, id value.ID) (*webhook.Recovery, error)
	PutRecovery(ctx context.Context, previous, next *webhook.Recovery, from value.Time) error
}

// Endpoints tells the state of endpoints and changes their condition.
// SetRouting reports whether it stood as previous, and stands as next then.
type Endpoints interface {
	Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error)
	SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (bool, error)
}

// BacklogStore is what a backlog is kept in.
type BacklogStore interface {
	Rows
	RowWriter
	Recoveries
	Endpoints
}

// Backlog is the HELD and FAILED rows of endpoints, to be sent again or
// cancelled.
type Backlog struct {
	store BacklogStore
	queue Queue
	clock func() time.Time
}

// NewBacklog returns the backlog kept in the store, sent through q.
func NewBacklog(store BacklogStore, q Queue, clock func() time.Time) *Backlog {
	return &Backlog{store: store, queue: q, clock: clock}
}

// changed is what became of a page of rows.
type changed struct {
	// rows are those that were written, by their place in the page.
	rows []*webhook.Delivery

	mu sync.Mutex
	// first is the place of the first row that could not be written, the
	// page's length when there is none, and err is why.
	first    int
	err      error
	failures int // of groups of rows
}

// fail notes that rows from the place on were not written.
func (c *changed) fail(place int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = min(c.first, place)
	if err != nil {
		c.failures++
		c.err = cmp.Or(c.err, err)
	}
}

// hopeless tells that what is left of the page is better left for later.
func (c *changed) hopeless() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures >= failures
}

// written are the rows that were written, in the order of the page.
func (c *changed) written() []*webhook.Delivery {
	return slices.DeleteFunc(slices.Clone(c.rows), func(r *webhook.Delivery) bool { return r == nil })
}

// seen is how many rows of the page are done with.
func (c *changed) seen() int {
	n := c.first
	for _, row := range c.rows[c.first:] {
		if row != nil {
			n++
		}
	}
	return n
}

// change writes what becomes of each row of a page, nil meaning that it
// stays. A row that somebody else changes at the same time stays, too. Rows
// that cannot be written do not stop the others, unless they are many.
func (b *Backlog) change(ctx context.Context, org value.ID, page []webhook.UnsentDelivery, become func(*webhook.Delivery) *webhook.Delivery) *changed {
	c := &changed{rows: make([]*webhook.Delivery, len(page)), first: len(page)}
	rows, err := b.read(ctx, org, page)
	if err != nil {
		c.first, c.err = 0, err
		return c
	}
	var steps []step
	for i, row := range rows {
		if row != nil {
			if next := become(row); next != nil {
				steps = append(steps, step{i, webhook.DeliveryChange{Previous: row, Next: next}})
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(rowWriters)
	for together := range slices.Chunk(steps, writeSize) {
		group.Go(func() error {
			if c.hopeless() {
				c.fail(together[0].place, nil)
				return nil
			}
			left, err := b.write(ctx, together, c)
			if err != nil {
				c.fail(left[0].place, err)
			}
			return nil
		})
	}
	_ = group.Wait() // every error is noted
	return c
}

// step is a row of a page and what becomes of it.
type step struct {
	place int
	webhook.DeliveryChange
}

// write writes rows together, but for those that somebody else has changed.
// With an error it returns those that are not written.
func (b *Backlog) write(ctx context.Context, steps []step, c *changed) ([]step, error) {
	for len(steps) > 0 {
		outcomes := make([]webhook.DeliveryChange, len(steps))
		for i, s := range steps {
			outcomes[i] = s.DeliveryChange
		}
		clash, err := b.store.RecordOutcomes(ctx, outcomes, nil)
		switch {
		case err != nil:
			return steps, err
		case clash == nil:
			for _, s := range steps {
				c.rows[s.place] = s.Next
			}
			return nil, nil
		case len(clash.Deliveries)+len(clash.Recorded) == 0:
			return steps, errors.New("rows were refused, and none of them is named")
		}
		var left []step
		for i, s := range steps {
			if _, changed := clash.Deliveries[i]; changed {
				continue
			}
			if clash.Recorded[i] {
				c.rows[s.place] = s.Next
			} else {
				left = append(left, s)
			}
		}
		steps = left
	}
	return nil, nil
}

// send sends the messages of rows that are under a due mark, which brings
// them should this fail.
func (b *Backlog) send(ctx context.Context, lane webhook.Lane, rows []*webhook.Delivery) error {
	if len(rows) == 0 {
		return nil
	}
	return b.queue.Send(ctx, lane, value.TimeOf(b.clock()), rows...)
}

// read reads the rows of a page in its order, nil what is gone.
func (b *Backlog) read(ctx context.Context, org value.ID, page []webhook.UnsentDelivery) ([]*webhook.Delivery, error) {
	rows := make([]*webhook.Delivery, len(page))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(rowReaders)
	for start := 0; start < len(page); start += readSize {
		part := page[start:min(start+readSize, len(page))]
		group.Go(func() error {
			ids := make([]value.ID, len(part))
			for i, u := range part {
				ids[i] = u.DeliveryID
			}
			found, err := b.store.Deliveries(inner, org, ids)
			for i, id := range ids {
				rows[start+i] = found[id]
			}
			return err
		})
	}
	return rows, group.Wait()
}
