package sweeper

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// pageSize is the due marks that are read at a time, and the rows that are
	// sent together.
	pageSize = 100
	// lookPages is how many pages of each partition a run puts in order before
	// it begins to send.
	lookPages = 50
	// senders is the pages of rows worked on at a time.
	senders = 4
)

// rows sends the deliveries whose attempt comes near, and returns what else is
// due. The marks are looked at before anything is sent, so that organizations
// take turns however many rows one of them has.
func (s *Sweeper) rows(ctx context.Context, found *findings) (others []webhook.Due, err error) {
	var looks [dynamo.DueShards]look
	for more := true; more; {
		var rows []webhook.Due
		more = false
		lookErr := s.look(ctx, looks[:])
		if lookErr != nil {
			err = lookErr
		}
		for i := range looks {
			rows, others = append(rows, looks[i].rows...), append(others, looks[i].others...)
			more = more || !looks[i].done
		}
		if sendErr := s.sendAll(ctx, interleave(rows), found); sendErr != nil {
			return others, sendErr
		}
	}
	return others, err
}

// look is how far a due partition was looked at.
type look struct {
	after        string
	rows, others []webhook.Due // found last
	done         bool
}

// look reads on in every partition.
func (s *Sweeper) look(ctx context.Context, looks []look) error {
	var group errgroup.Group
	group.SetLimit(shards)
	for shard := range looks {
		l := &looks[shard]
		l.rows, l.others = nil, nil
		if l.done {
			continue
		}
		group.Go(func() error {
			err := s.lookAt(ctx, shard, l)
			l.done = l.done || err != nil
			return s.failed(ctx, err, "shard", shard)
		})
	}
	return group.Wait()
}

func (s *Sweeper) lookAt(ctx context.Context, shard int, l *look) error {
	for range lookPages {
		now := value.TimeOf(s.cfg.Clock())
		page, err := s.store.Due(ctx, shard, l.after, now.Add(horizon), pageSize)
		if err != nil {
			return err
		}
		for _, d := range page {
			switch {
			case d.Kind == webhook.DueDelivery:
				l.rows = append(l.rows, d)
			case d.Kind == webhook.DueCircuit || !early(d, now): // a job has no use for being early
				l.others = append(l.others, d)
			}
		}
		if len(page) == 0 {
			l.done = true
			return nil
		}
		l.after = page[len(page)-1].Mark
	}
	return nil
}

// early reports whether the time of a mark is yet to come.
func early(d webhook.Due, now value.Time) bool { return d.Mark >= now.String()+"~" }

// interleave puts marks into the order of time, but so that organizations
// take turns.
func interleave(due []webhook.Due) []webhook.Due {
	slices.SortStableFunc(due, byMark)
	turns := map[value.ID]int{}
	type placed struct {
		webhook.Due
		turn int
	}
	all := make([]placed, len(due))
	for i, d := range due {
		all[i] = placed{d, turns[d.OrganizationID]}
		turns[d.OrganizationID]++
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.turn - b.turn })
	for i := range all {
		due[i] = all[i].Due
	}
	return due
}

// sendAll sends the deliveries in pages.
func (s *Sweeper) sendAll(ctx context.Context, due []webhook.Due, found *findings) error {
	var group errgroup.Group
	group.SetLimit(senders)
	for page := range slices.Chunk(due, pageSize) {
		group.Go(func() error {
			sent, err := s.send(ctx, page, value.TimeOf(s.cfg.Clock()))
			found.add(&found.sent, sent)
			return s.failed(ctx, err, "rows", len(page))
		})
	}
	return group.Wait()
}

// leased is a row whose mark lies ahead by the lease.
type leased struct {
	row  *webhook.Delivery
	mark webhook.Due
}

// send moves the marks of rows ahead by the lease and then sends their
// messages, each for its time. Should the sending fail, the mark brings the
// row again.
func (s *Sweeper) send(ctx context.Context, due []webhook.Due, now value.Time) (int, error) {
	rows := make([]leased, len(due))
	err := each(ctx, due, func(ctx context.Context, i int, d webhook.Due) (err error) {
		rows[i], err = s.lease(ctx, d, now)
		return err
	})
	rows = slices.DeleteFunc(rows, func(l leased) bool { return l.row == nil })
	if len(rows) == 0 {
		return 0, err
	}
	pending := make([]*webhook.Delivery, len(rows))
	for i, l := range rows {
		pending[i] = l.row
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	if err := s.queue.Send(ctx, webhook.LaneMain, now, pending...); err != nil {
		return 0, err
	}
	return len(rows), errors.Join(err, s.prolong(ctx, rows, now))
}

// lease moves a row's mark ahead; without a row when another run has it, or
// no attempt lies ahead.
func (s *Sweeper) lease(ctx context.Context, d webhook.Due, now value.Time) (leased, error) {
	moved, row, err := s.store.Postpone(ctx, d, now.Add(webhook.Lease))
	if err != nil || row == nil || row.NextAttemptAt == nil || !row.Pending() {
		return leased{}, err
	}
	return leased{row, *moved}, nil
}

// prolong has the leases of rows that were sent grow with their lateness. A
// row that is late was sent before, most likely, and waits in the queue: a
// long queue is not to fill with messages of the same rows.
func (s *Sweeper) prolong(ctx context.Context, rows []leased, now value.Time) error {
	return each(ctx, rows, func(ctx context.Context, _ int, l leased) error {
		late := now.Std().Sub(l.row.NextAttemptAt.Std())
		if late <= webhook.Lease {
			return nil
		}
		return s.postpone(ctx, l.mark, now.Add(late))
	})
}

// each writes for every one of them, several at a time.
func each[T any](ctx context.Context, all []T, write func(ctx context.Context, i int, one T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, one := range all {
		group.Go(func() error { return write(ctx, i, one) })
	}
	return group.Wait()
}
