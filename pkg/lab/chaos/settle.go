package chaos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// settle waits until every delivery has ended, redrives the dead letters once,
// and returns what there is then.
func (r *run) settle(ctx context.Context) (*evidence, error) {
	r.say("calm: %d events were sent", r.load.sent())
	e, err := r.awaitEnd(ctx)
	if err != nil {
		return nil, err
	}
	redriven, err := r.redrive(ctx, e)
	if err != nil || len(redriven) == 0 {
		return e, err
	}
	e, err = r.awaitEnd(ctx)
	if err == nil {
		e.redriven = redriven
	}
	return e, err
}

const (
	lookEvery = 3 * time.Second
	calmLooks = 2  // in a row without an attempt ahead, after which a complete run has ended
	maxLooks  = 10 // likewise, after which what is missing is missing for good

	// manyMessages is how many messages say by themselves that a run goes on. A
	// look reads every delivery.
	manyMessages = 2000
)

// ending decides after each look at the service whether its deliveries have
// ended.
type ending struct {
	calm      int // looks in a row that found no attempt ahead
	restarted bool
}

type step uint8

const (
	lookAgain step = iota
	restart
	finish
)

// next tells what to do after a look that found so many deliveries with an
// attempt ahead and so many messages. A delivery's further messages wait for
// minutes, in case that its own is lost: once no attempt lies ahead, a restart
// of the service makes all of them visible at once.
func (s *ending) next(pending, messages int, complete bool) step {
	if pending > 0 {
		s.calm = 0
		return lookAgain
	}
	s.calm++
	switch {
	case messages > 0 && complete && s.calm >= calmLooks && !s.restarted:
		s.calm, s.restarted = 0, true
		return restart
	case s.calm >= maxLooks, messages == 0 && complete && s.calm >= calmLooks:
		return finish
	}
	return lookAgain
}

// patience is until when a run waits for its deliveries' ends: for the calm, and
// for as long after the first due mark that is seen of each delivery.
type patience struct {
	calm  time.Duration
	until time.Time
	seen  map[value.ID]bool
}

func (p *patience) extend(marks map[value.ID]time.Time) {
	for id, at := range marks {
		if until := at.Add(p.calm); !p.seen[id] && until.After(p.until) {
			p.until = until
		}
		p.seen[id] = true
	}
}

// awaitEnd looks at the service until its deliveries have ended or the time for
// that is over, and returns what the last look found.
func (r *run) awaitEnd(ctx context.Context) (e *evidence, err error) {
	var told time.Time
	var state ending
	wait := patience{calm: r.Calm, until: time.Now().Add(r.Calm), seen: map[value.ID]bool{}}
	for took := time.Duration(0); time.Now().Before(wait.until); {
		if err := pause.For(ctx, max(lookEvery, took)); err != nil {
			return nil, err
		}
		if n, err := r.messages(ctx); err != nil {
			return nil, err
		} else if n > manyMessages {
			if time.Since(told) > time.Minute {
				told = time.Now()
				r.say("%d messages", n)
			}
			continue
		}
		began := time.Now()
		if e, err = r.look(ctx); err != nil {
			return nil, err
		}
		took = time.Since(began)
		wait.extend(e.marks)
		pending, last := e.pending()
		switch state.next(pending, e.waiting(), len(e.deliveries) >= len(e.expected) && len(e.lost) == 0) {
		case finish:
			return e, nil
		case restart:
			if err := errors.Join(r.process.Stop(), r.start(ctx, "")); err != nil {
				return nil, err
			}
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			r.say("%d of %d deliveries, %d pending, the last until %s, %d messages", len(e.deliveries), len(e.expected), pending, last.Local().Format(time.TimeOnly), e.waiting())
		}
	}
	return r.look(ctx)
}

func (r *run) look(ctx context.Context) (*evidence, error) {
	e, err := collect(ctx, r.table(), r.tenants, r.load.puts, r.found)
	if err == nil {
		r.found = e.records
		e.marks, err = dueMarks(ctx, r.table())
	}
	if err == nil {
		err = r.emptyQueues(ctx)
	}
	if err == nil {
		e.queues, err = workload.ReadQueues(ctx, r.service.Queues)
		e.queues = slices.DeleteFunc(e.queues, ofEndpoint)
	}
	return e, err
}

// messages counts those that functions will take.
func (r *run) messages(ctx context.Context) (int, error) {
	queues, err := workload.ReadQueues(ctx, r.service.Queues)
	e := evidence{queues: slices.DeleteFunc(queues, ofEndpoint)}
	return e.waiting(), err
}

// redrive moves dead letters and parked records back, as an operator does.
func (r *run) redrive(ctx context.Context, e *evidence) (map[string]string, error) {
	said := map[string]string{}
	for _, q := range e.queues {
		if !q.Dead || q.All() == 0 {
			continue
		}
		args := []string{"redrive", "deliveries"}
		switch {
		case strings.HasPrefix(q.Name, "Park"):
			args = []string{"replay"}
		case strings.HasPrefix(q.Name, "Records"):
			args[1] = "records"
		case strings.HasPrefix(q.Name, "IndexJobs"):
			args[1] = "index-jobs"
		}
		name := "commerce " + strings.Join(args, " ")
		text, err := r.process.Command(ctx, args...)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said[name] = text
		r.say("%d messages in %s; %s: %s", q.All(), q.Name, name, text)
	}
	return said, nil
}
