package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// maxRoutingRetries bounds the tries to set a routing that other writers
	// are setting.
	maxRoutingRetries = 4
	// routingTime is how long a throttled table is asked: the messages wait.
	routingTime = 5 * time.Second
)

// updateRoutings brings the circuits and lanes of the endpoints that were
// asked in line with their health, and disables those that have failed for
// too long. Should it fail, the next attempt tries again.
func (w *Worker) updateRoutings(ctx context.Context, messages []*message) {
	ctx, cancel := context.WithTimeout(ctx, routingTime)
	defer cancel()
	due := slices.DeleteFunc(observe(messages), func(o *observation) bool { return !w.health.add(o, w.now()) })
	parallel.Each(len(due), slices.All(due), func(_ int, o *observation) {
		if err := recovered(func() error { return w.updateRouting(ctx, o) }); err != nil {
			w.cfg.Logger.ErrorContext(ctx, "routing of an endpoint was not updated", "endpointId", o.endpoint.ID, "error", err)
		}
	})
}

// updateRouting reads the endpoint's health and changes the endpoint when the
// health calls for it. The endpoint as it was before the attempts decides
// only whether to read it again; the change follows from its present state.
func (w *Worker) updateRouting(ctx context.Context, o *observation) error {
	h, err := w.readHealth(ctx, o.endpoint)
	if err != nil || !o.callsForChange(h, w.now()) {
		return err
	}
	return retry.Contended(ctx, maxRoutingRetries, func() (done bool, err error) {
		e, err := w.store.Endpoint(ctx, o.endpoint.OrganizationID, o.endpoint.ID)
		if err != nil || e == nil {
			return true, err
		}
		if e.HealthStart() != h.Since {
			if h, err = w.readHealth(ctx, e); err != nil {
				return false, err
			}
		}
		return w.changeEndpoint(ctx, e, o, h)
	})
}

func (w *Worker) readHealth(ctx context.Context, e *webhook.Endpoint) (h webhook.Health, err error) {
	err = retryWhileThrottled(ctx, func() error {
		h, err = w.store.Health(ctx, e.OrganizationID, e.ID, e.HealthStart(), w.now())
		return err
	})
	if err == nil {
		w.health.put(e.ID, h, w.now())
	}
	return h, err
}

// changeEndpoint makes the change that the endpoint's health calls for. It is
// not done when another writer was faster.
func (w *Worker) changeEndpoint(ctx context.Context, e *webhook.Endpoint, o *observation, h webhook.Health) (done bool, err error) {
	// Attempts at another url say nothing about this one.
	sameURL := e.URL == o.endpoint.URL
	next, disable := e.NextRouting(h, sameURL && o.succeeded, sameURL && o.probeFailed, w.now())
	switch {
	case disable != "":
		return true, w.disable(ctx, e, disable)
	case next.Equal(e.Routing()):
		return true, nil
	}
	err = retryWhileThrottled(ctx, func() error {
		done, err = w.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), next)
		return err
	})
	if done {
		w.cfg.Logger.InfoContext(ctx, "routing changed", "endpointId", e.ID,
			"lane", next.Lane, "circuit", state(next.Circuit), "lane.was", e.Lane, "circuit.was", state(e.Circuit))
		if next.Circuit.Soon() && !next.Circuit.Equal(e.Circuit) {
			w.probeSoon(ctx, o, next.Circuit)
		}
	}
	return done, err
}

// probeSoon makes one of the deliveries that were attempted the next probe: its
// message is at hand, and the sweeper comes once a minute. Where none is left to
// be sent, the sweeper makes one of what the circuit holds then.
func (w *Worker) probeSoon(ctx context.Context, o *observation, c *webhook.Circuit) {
	for _, m := range o.messages {
		d := m.attempt.delivery
		if d == nil || !d.Pending() && d.HeldReason != webhook.HeldCircuitOpen {
			continue
		}
		next := d.ProbeNext(c.ProbeAt, m.from.nameAfter(d.AttemptCount), w.now())
		if _, err := w.store.PutDelivery(ctx, d, next); err != nil {
			w.cfg.Logger.WarnContext(ctx, "the next probe is left to the sweeper", "deliveryId", d.ID, "error", err)
			return
		}
		m.attempt.delivery = next
		return
	}
}

func state(c *webhook.Circuit) webhook.CircuitState {
	if c == nil {
		return ""
	}
	return c.State
}

// disable disables an endpoint unless its owner has changed it meanwhile.
func (w *Worker) disable(ctx context.Context, read *webhook.Endpoint, reason string) error {
	_, err := w.store.ChangeEndpoint(ctx, read.OrganizationID, read.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		if e.UpdatedAt != read.UpdatedAt || e.Status != webhook.Active {
			return e, nil
		}
		return e.Disable(reason, w.now()), nil
	})
	if err != nil {
		return fmt.Errorf("disable endpoint %s: %w", read.ID, err)
	}
	return nil
}
