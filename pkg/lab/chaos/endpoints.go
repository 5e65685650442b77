package chaos

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// endpoint is an endpoint of the service with its receiver's side. The receiver fails half of the requests in every way,
// unless it is steady, or dead and refuses connections.
type endpoint struct {
	steady, dead bool
	retries      int
	timeout      int // seconds
	subscribed   []string

	id value.ID
}

// endpoints are those of an organization; each event that is sent is for one of them at least.
func endpoints() []*endpoint {
	return []*endpoint{
		{retries: 2, timeout: 5, subscribed: []string{"order.created", "order.confirmed", "order.paid"}},
		{retries: 2, timeout: 5, subscribed: []string{"payment.*", "order.completed", "order.fulfilled", "order.shipped"}},
		{retries: 1, timeout: 2, subscribed: []string{"invoice.*", "product.created"}},
		{steady: true, retries: 2, timeout: 10, subscribed: []string{"product.*", "customer.created"}},
		{dead: true, retries: 2, timeout: 5, subscribed: []string{"customer.created"}},
	}
}

// subscribe makes an endpoint in the service, at a path that is its number. The port of a dead one is never listened
// on.
func (r *run) subscribe(ctx context.Context, t *tenant, e *endpoint) (err error) {
	base, path := r.service.Receiver.URL, "/"+strconv.Itoa(len(r.endpoints))
	if e.dead {
		base = "http://127.0.0.1:1"
	}
	e.id, err = t.CreateEndpoint(ctx, map[string]any{
		"url": base + path, "events": e.subscribed, "retryCount": e.retries, "timeoutSeconds": e.timeout,
	})
	t.endpoints, r.endpoints[path] = append(t.endpoints, e), e
	return err
}

// answers is how the receiver answers at each path. Endpoints are made before events are sent.
func (r *run) answers(random *rand.Rand) workload.Behaviour {
	return func(path string) (status int, wait time.Duration) {
		draw, late := random.IntN(100), time.Duration(random.Int64N(int64(700*time.Millisecond)))
		switch {
		case r.endpoints[path].steady:
			return http.StatusNoContent, 0
		case draw < 18:
			return http.StatusInternalServerError, 0
		case draw < 26:
			return http.StatusTooManyRequests, 0
		case draw < 38:
			return 0, 0
		case draw < 40:
			return 0, time.Hour // longer than any client waits
		case draw < 46:
			return http.StatusBadGateway, late
		case draw < 50:
			return http.StatusOK, late
		}
		return http.StatusNoContent, 0
	}
}

// tenant is an organization with its endpoints, what it has sent, and an integrator's copy of its records.
type tenant struct {
	*workload.Tenant
	endpoints []*endpoint
	puts      []put
	cursor    string    // of the feed
	copied    revisions // by the feed
}

// revisions are records with the times of their changes.
type revisions map[value.ID]value.Time

// follow copies the new changes of the feed. No record is deleted.
func (t *tenant) follow(ctx context.Context) error {
	for more := true; more; {
		var page struct {
			Data []struct {
				ID        value.ID   `json:"id"`
				ChangedAt value.Time `json:"changedAt"`
			} `json:"data"`
			Meta struct {
				Next string `json:"next"`
				More bool   `json:"more"`
			} `json:"meta"`
		}
		if err := t.API.Get(ctx, "/api/changes?limit=100"+t.cursor, &page); err != nil {
			return err
		}
		for _, c := range page.Data {
			t.copied[c.ID] = c.ChangedAt
		}
		t.cursor, more = "&after="+page.Meta.Next, page.Meta.More
	}
	return nil
}
