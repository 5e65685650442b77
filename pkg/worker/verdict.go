package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// judgements bounds the tries to set a condition that others are setting.
	judgements = 4
	// judgeTime is how long a busy table is asked: the messages wait.
	judgeTime = 5 * time.Second
)

// verdict is what recorded attempts say of their endpoint.
type verdict struct {
	endpoint    *webhook.Endpoint // as it was read before the attempts
	attempts    []webhook.Attempt
	succeeded   bool // one of them
	probeFailed bool
	trouble     bool // there is something to judge
}

// judge brings the circuits and lanes of the endpoints that were asked in
// line with how they do, and disables those that have failed for too long.
// Should it fail, the next attempt judges again.
func (w *Worker) judge(ctx context.Context, tasks []*task) {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	var group sync.WaitGroup
	for _, v := range verdicts(tasks) {
		if !w.pulses.beat(v, w.now()) {
			continue
		}
		group.Go(func() {
			if err := recovered(func() error { return w.pass(ctx, v) }); err != nil {
				w.cfg.Logger.ErrorContext(ctx, "endpoint was not judged", "endpointId", v.endpoint.ID, "error", err)
			}
		})
	}
	group.Wait()
}

func verdicts(tasks []*task) []*verdict {
	var found []*verdict
	byEndpoint := map[value.ID]*verdict{}
	for _, t := range tasks {
		if !t.counted || t.delivery.Delivery.Test {
			continue
		}
		e := t.delivery.Endpoint
		v := byEndpoint[e.ID]
		if v == nil {
			v = &verdict{endpoint: e, trouble: e.Lane != webhook.LaneMain || e.Circuit != nil}
			byEndpoint[e.ID] = v
			found = append(found, v)
		}
		v.add(t)
	}
	return found
}

func (v *verdict) add(t *task) {
	a := t.outcome.Attempt
	v.attempts = append(v.attempts, a)
	failed := a.Error != nil
	v.succeeded = v.succeeded || !failed
	v.probeFailed = v.probeFailed || failed && t.delivery.Delivery.Probe
	v.trouble = v.trouble || failed || a.Duration() > webhook.SlowAttempt
}

// decides reports whether the endpoint must change by its health.
func (v *verdict) decides(h webhook.Health, now value.Time) bool {
	next, disable := v.endpoint.NextRouting(h, v.succeeded, v.probeFailed, now)
	return disable != "" || !next.Equal(v.endpoint.Routing())
}

// pass reads the endpoint's health and changes the endpoint when that is
// called for. What was read before the attempts calls for a second look only;
// the change is made by what the endpoint is then.
func (w *Worker) pass(ctx context.Context, v *verdict) error {
	h, err := w.look(ctx, v.endpoint)
	if err != nil || !v.decides(h, w.now()) {
		return err
	}
	for range judgements {
		e, err := w.store.Endpoint(ctx, v.endpoint.OrganizationID, v.endpoint.ID)
		if err != nil || e == nil {
			return err
		}
		if e.HealthStart() != h.Since {
			if h, err = w.look(ctx, e); err != nil {
				return err
			}
		}
		done, err := w.change(ctx, e, v, h)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("set the condition of endpoint %s: others were faster %d times", v.endpoint.ID, judgements)
}

func (w *Worker) look(ctx context.Context, e *webhook.Endpoint) (webhook.Health, error) {
	var h webhook.Health
	err := insist(ctx, func() (err error) {
		h, err = w.store.Health(ctx, e.OrganizationID, e.ID, e.HealthStart(), w.now())
		return err
	})
	if err == nil {
		w.pulses.saw(e.ID, h, w.now())
	}
	return h, err
}

// change makes of the endpoint what its health calls for, and reports whether
// nothing is left to be done.
func (w *Worker) change(ctx context.Context, e *webhook.Endpoint, v *verdict, h webhook.Health) (done bool, err error) {
	// The attempts at another url say nothing of this one.
	same := e.URL == v.endpoint.URL
	now := w.now()
	next, disable := e.NextRouting(h, same && v.succeeded, same && v.probeFailed, now)
	switch {
	case disable != "":
		return true, w.disable(ctx, e, disable)
	case next.Equal(e.Routing()):
		return true, nil
	}
	err = insist(ctx, func() (err error) {
		done, err = w.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), next)
		return err
	})
	if done {
		w.cfg.Logger.InfoContext(ctx, "condition", "endpointId", e.ID,
			"lane", next.Lane, "circuit", state(next.Circuit), "lane.was", e.Lane, "circuit.was", state(e.Circuit))
	}
	return done, err
}

func state(c *webhook.Circuit) webhook.CircuitState {
	if c == nil {
		return ""
	}
	return c.State
}

// disable disables an endpoint unless its owner has changed it meanwhile.
func (w *Worker) disable(ctx context.Context, judged *webhook.Endpoint, reason string) error {
	_, err := w.store.ChangeEndpoint(ctx, judged.OrganizationID, judged.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		if e.UpdatedAt != judged.UpdatedAt || e.Status != webhook.Active {
			return e, nil
		}
		return e.Disable(reason, w.now()), nil
	})
	if err != nil {
		return fmt.Errorf("disable endpoint %s: %w", judged.ID, err)
	}
	return nil
}
