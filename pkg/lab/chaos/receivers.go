package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/webhook"
)

// behaviour is how a receiver answers.
type behaviour uint8

const (
	steady behaviour = iota // answers everything with success
	flaky                   // fails half of the requests, in every way
	dead                    // refuses connections
)

// endpoint is an endpoint of the service with its receiver's side.
type endpoint struct {
	behaviour  behaviour
	retries    int
	timeout    int // seconds
	subscribed []string

	id value.ID
}

// endpoints are those of an organization; each event that is sent is for one of them at least.
func endpoints(first bool) []*endpoint {
	all := []*endpoint{
		{behaviour: flaky, retries: 2, timeout: 5, subscribed: []string{"order.created", "order.confirmed", "order.paid"}},
		{behaviour: flaky, retries: 2, timeout: 5, subscribed: []string{"payment.*", "order.completed", "order.fulfilled", "order.shipped"}},
		{behaviour: flaky, retries: 1, timeout: 2, subscribed: []string{"invoice.*", "product.created"}},
		{behaviour: steady, retries: 2, timeout: 10, subscribed: []string{"product.*", "customer.created"}},
	}
	if first {
		all = append(all, &endpoint{behaviour: dead, retries: 2, timeout: 5, subscribed: []string{"customer.created"}})
	}
	return all
}

// tenant is an organization with its endpoints.
type tenant struct {
	*workload.Tenant
	endpoints []*endpoint
}

// request is one that a receiver got.
type request struct {
	delivery value.ID
	status   int // 0: the connection was cut, or the client gave up
}

func (r *request) accepted() bool { return r.status >= 200 && r.status <= 299 }

// receivers is a server for all endpoints that are not dead. It is safe for concurrent use.
type receivers struct {
	server *http.Server
	base   string

	mu        sync.Mutex
	random    *rand.Rand
	endpoints []*endpoint
	requests  []*request
}

func startReceivers(ctx context.Context, random *rand.Rand) (r *receivers, err error) {
	r = &receivers{random: random}
	r.server, r.base, err = workload.Serve(ctx, r)
	return r, err
}

// subscribe makes an endpoint in the service, at a path that is its number. The port of a dead one is never listened
// on.
func (r *receivers) subscribe(ctx context.Context, t *tenant, e *endpoint) error {
	base := r.base
	if e.behaviour == dead {
		base = "http://127.0.0.1:1"
	}
	created, err := t.CreateEndpoint(ctx, map[string]any{
		"url": base + "/" + strconv.Itoa(len(r.endpoints)), "events": e.subscribed, "retryCount": e.retries, "timeoutSeconds": e.timeout,
	})
	if err != nil {
		return err
	}
	e.id = created.ID
	t.endpoints = append(t.endpoints, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoints = append(r.endpoints, e)
	return nil
}

// seen returns the requests so far.
func (r *receivers) seen() (all []request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		all = append(all, *q)
	}
	return all
}

// ServeHTTP takes a webhook and answers as the endpoint behaves.
func (r *receivers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	event, err := value.ParseID(req.Header.Get("webhook-id"))
	number, wrong := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/"))
	if err := errors.Join(err, wrong); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	e := r.endpoints[number]
	status, wait := e.behaviour.choose(r.random)
	q := &request{delivery: webhook.DeliveryID(event, e.id)}
	r.requests = append(r.requests, q)
	r.mu.Unlock()
	if pause.For(req.Context(), wait) != nil || status == 0 {
		panic(http.ErrAbortHandler)
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "2")
	}
	w.WriteHeader(status)
	_ = http.NewResponseController(w).Flush() // a client that is gone does not count it
	r.mu.Lock()
	defer r.mu.Unlock()
	q.status = status
}

// choose draws what becomes of a request: the status, 0 for a cut connection, and how long it takes.
func (b behaviour) choose(random *rand.Rand) (status int, wait time.Duration) {
	draw, late := random.IntN(100), time.Duration(random.Int64N(int64(700*time.Millisecond)))
	switch {
	case b == steady:
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
