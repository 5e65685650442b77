package sweeper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// pageSize is the due marks that are read at a time, and the deliveries
	// that are sent together.
	pageSize = 100
	// maxScanPages is how many pages of each partition a run reads and puts in
	// order; the next run goes on.
	maxScanPages = 50
	maxSendPages = 4 // at a time
	// queueLease is how long a message that was sent may wait in its queue, at
	// least, before another one is sent.
	queueLease = 10 * time.Minute
)

// sendDue sends the deliveries whose attempt is near, and returns the other
// due marks. It reads marks before it sends any delivery, so that the
// organizations alternate however many deliveries one of them has.
func (s *Sweeper) sendDue(ctx context.Context) (others []webhook.Due, err error) {
	var scans [dynamo.Shards][]webhook.Due
	err = eachPartition(func(shard int) (err error) {
		scans[shard], err = s.readDue(ctx, shard)
		return s.failed(ctx, err, "shard", shard)
	})
	var deliveries []webhook.Due
	now := s.now()
	for _, d := range slices.Concat(scans[:]...) {
		switch {
		case d.Kind == webhook.DueDelivery:
			deliveries = append(deliveries, d)
		case d.Kind == webhook.DueCircuit || !early(d, now): // a job is not started early
			others = append(others, d)
		}
	}
	return others, cmp.Or(s.sendAll(ctx, alternate(deliveries)), err)
}

// readDue reads the due marks of a partition, with an error those that it found.
func (s *Sweeper) readDue(ctx context.Context, shard int) (found []webhook.Due, err error) {
	after := ""
	for range maxScanPages {
		page, err := s.store.Due(ctx, shard, after, s.now().Add(dueWithin), pageSize)
		if err != nil || len(page) == 0 {
			return found, err
		}
		found, after = append(found, page...), page[len(page)-1].Mark
	}
	return found, nil
}

// early reports whether the time of a mark is yet to come.
func early(d webhook.Due, now value.Time) bool { return d.At > now }

func byMark(a, b webhook.Due) int { return cmp.Compare(a.Mark, b.Mark) }

// alternate orders marks by time within an organization, and the organizations
// alternate.
func alternate(due []webhook.Due) []webhook.Due {
	slices.SortStableFunc(due, byMark)
	seen := map[value.ID]int{}
	var rounds [][]webhook.Due // the first mark of each organization, then the second
	for _, d := range due {
		n := seen[d.OrganizationID]
		if seen[d.OrganizationID]++; n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], d)
	}
	return slices.Concat(rounds...)
}

// sendAll sends the deliveries in pages.
func (s *Sweeper) sendAll(ctx context.Context, due []webhook.Due) error {
	var group errgroup.Group
	group.SetLimit(maxSendPages)
	for page := range slices.Chunk(due, pageSize) {
		group.Go(func() error { return s.failed(ctx, s.sendPage(ctx, page, s.now()), "deliveries", len(page)) })
	}
	return group.Wait()
}

// sendPage moves the due marks ahead by the lease and then sends the messages,
// each for its time. When the sending fails, or the run dies, another run finds
// the marks two minutes after the attempts were due at the latest.
func (s *Sweeper) sendPage(ctx context.Context, due []webhook.Due, now value.Time) error {
	marks, deliveries := make([]*webhook.Due, len(due)), make([]*webhook.Delivery, len(due))
	err := parallel.UntilError(ctx, maxWrites, slices.All(due), func(ctx context.Context, i int, d webhook.Due) error {
		moved, delivery, err := s.store.Postpone(ctx, d, max(now, d.At).Add(webhook.Lease))
		if err == nil && delivery != nil && delivery.NextAttemptAt != nil && delivery.Pending() {
			marks[i], deliveries[i] = moved, delivery
		}
		return err // without a delivery another run has it, or no attempt lies ahead
	})
	marks = slices.DeleteFunc(marks, func(d *webhook.Due) bool { return d == nil })
	deliveries = slices.DeleteFunc(deliveries, func(d *webhook.Delivery) bool { return d == nil })
	if len(deliveries) == 0 {
		return err
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	// The worker moves what belongs into the slow lane: it reads the endpoint.
	if err := s.queue.Send(ctx, webhook.LaneMain, now, deliveries...); err != nil {
		return err
	}
	// Most likely a late delivery was sent before and waits in the queue. Its
	// lease grows with its lateness, so that a long queue does not fill with
	// messages of the same deliveries.
	prolongErr := parallel.UntilError(ctx, maxWrites, slices.All(marks), func(ctx context.Context, i int, mark *webhook.Due) error {
		late := now.Std().Sub(deliveries[i].NextAttemptAt.Std())
		if late < webhook.ResendAfter {
			return nil
		}
		return s.postpone(ctx, *mark, now.Add(max(queueLease, late)))
	})
	return errors.Join(err, prolongErr)
}

func (s *Sweeper) postpone(ctx context.Context, d webhook.Due, until value.Time) error {
	_, _, err := s.store.Postpone(ctx, d, until)
	return err
}
