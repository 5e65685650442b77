package sweep

import (
	"context"
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
			case d.Kind == webhook.DueRow:
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

// send moves the marks of rows ahead by the lease and then sends their
// messages, each for its time. Should the sending fail, the mark brings the
// row again.
func (s *Sweeper) send(ctx context.Context, due []webhook.Due, now value.Time) (int, error) {
	rows := make([]*webhook.Row, len(due))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, d := range due {
		group.Go(func() (err error) {
			rows[i], err = s.lease(inner, d, now)
			return err
		})
	}
	postponed := group.Wait()
	pending := slices.DeleteFunc(rows, func(r *webhook.Row) bool { return r == nil || !r.Pending() })
	if len(pending) == 0 {
		return 0, postponed
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	if err := s.queue.SendTo(ctx, webhook.LaneMain, now, pending...); err != nil {
		return 0, err
	}
	return len(pending), postponed
}

// lease moves a row's mark ahead and returns the row; nil when another run
// has it. A row that is late already was sent before and most likely waits in
// the queue: its lease grows with its lateness, so that a long queue does not
// fill with messages of the same rows.
func (s *Sweeper) lease(ctx context.Context, d webhook.Due, now value.Time) (*webhook.Row, error) {
	moved, row, err := s.store.Postpone(ctx, d, now.Add(webhook.Lease))
	if err != nil || row == nil || row.NextAttemptAt == nil {
		return nil, err
	}
	if late := now.Std().Sub(row.NextAttemptAt.Std()); late > webhook.Lease {
		_, _, err = s.store.Postpone(ctx, *moved, now.Add(late))
	}
	return row, err
}
