package chaos

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/webhook"
)

// behaviour is how a receiver answers.
type behaviour uint8

const (
	steady    behaviour = iota // answers everything with success
	flaky                      // fails half of the requests, in every way
	hanging                    // like flaky, and some of its answers never come
	dead                       // refuses connections
	returning                  // answers 503 for a while, then with success
	queued                     // is an SQS queue, which takes everything
)

// endpoint is an endpoint of the service with its receiver's side.
type endpoint struct {
	behaviour  behaviour
	retries    int
	timeout    int // seconds
	subscribed []string

	id     value.ID
	queue  string // its name; "" for an endpoint over HTTP
	verify *standardwebhooks.Webhook
}

// endpoints are those of an organization; each event that is sent is for one of
// them at least.
func endpoints(first bool) []*endpoint {
	all := []*endpoint{
		{behaviour: flaky, retries: 2, timeout: 5, subscribed: []string{"order.created", "order.confirmed", "order.paid"}},
		{behaviour: flaky, retries: 2, timeout: 5, subscribed: []string{"payment.*", "order.completed", "order.fulfilled", "order.shipped", "order.cancelled"}},
		{behaviour: flaky, retries: 1, timeout: 5, subscribed: []string{"invoice.*"}},
		{behaviour: steady, retries: 2, timeout: 10, subscribed: []string{"product.*", "customer.created"}},
		{behaviour: hanging, retries: 2, timeout: 2, subscribed: []string{"product.created"}},
	}
	if first {
		all = append(all,
			&endpoint{behaviour: dead, retries: 2, timeout: 5, subscribed: []string{"customer.created"}},
			&endpoint{behaviour: returning, retries: 2, timeout: 5, subscribed: []string{"invoice.issued"}},
			&endpoint{behaviour: queued, retries: 2, timeout: 5, subscribed: []string{"order.paid", "customer.created"}})
	}
	return all
}

// tenant is an organization with its endpoints.
type tenant struct {
	*workload.Tenant
	endpoints []*endpoint
}

// request is one that a receiver got, as the receiver knows it.
type request struct {
	delivery value.ID
	arrived  time.Time
	answered time.Time // zero: the connection was cut, or the client gave up
	status   int       // 0 likewise
	body     [sha256.Size]byte
	wrong    string // what is wrong with it, "" for nothing
}

func (r *request) accepted() bool { return r.status >= 200 && r.status <= 299 }

// ended is when the request was answered, or arrived if it was not.
func (r *request) ended() time.Time {
	if r.answered.IsZero() {
		return r.arrived
	}
	return r.answered
}

// receivers is a server for all endpoints that are not dead. It is safe for
// concurrent use.
type receivers struct {
	server *http.Server
	base   string

	mu        sync.Mutex
	random    *rand.Rand
	returnsAt time.Time // when the endpoints that return do
	endpoints []*endpoint
	requests  []*request
}

func startReceivers(ctx context.Context, random *rand.Rand) (r *receivers, err error) {
	r = &receivers{random: random}
	r.server, r.base, err = workload.Serve(ctx, r)
	return r, err
}

// url is where an endpoint is served, under its number. The port of a dead one
// is never listened on.
func (r *receivers) url(e *endpoint) string {
	base := r.base
	if e.behaviour == dead {
		base = "http://127.0.0.1:1"
	}
	return base + "/" + strconv.Itoa(len(r.endpoints))
}

// subscribe makes an endpoint in the service.
func (r *receivers) subscribe(ctx context.Context, t *tenant, e *endpoint, url string) error {
	created, err := t.CreateEndpoint(ctx, map[string]any{
		"url": url, "events": e.subscribed, "retryCount": e.retries, "timeoutSeconds": e.timeout,
	})
	if err != nil {
		return err
	}
	e.id = created.ID
	if e.verify, err = standardwebhooks.NewWebhook(created.Secret); err != nil {
		return fmt.Errorf("the secret of an endpoint: %w", err)
	}
	t.endpoints = append(t.endpoints, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoints = append(r.endpoints, e)
	return nil
}

// returnAt says when the endpoints that return do.
func (r *receivers) returnAt(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returnsAt = at
}

// seen returns the requests that came before a time.
func (r *receivers) seen(before time.Time) (all []request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		if q.arrived.Before(before) {
			all = append(all, *q)
		}
	}
	return all
}

// ServeHTTP takes a webhook and answers as the endpoint behaves.
func (r *receivers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	number, err := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/"))
	r.mu.Lock()
	if err != nil || number < 0 || number >= len(r.endpoints) {
		r.mu.Unlock()
		http.NotFound(w, req)
		return
	}
	e := r.endpoints[number]
	answer := r.choose(e.behaviour, arrived)
	q := e.read(req.Header, body, arrived, e.verify.Verify)
	r.requests = append(r.requests, q)
	r.mu.Unlock()
	status := answer(w, req)
	if status == 0 || req.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_ = http.NewResponseController(w).Flush() // a client that is gone does not count it
	r.mu.Lock()
	defer r.mu.Unlock()
	q.status, q.answered = status, time.Now()
}

// read checks a request as its receiver would.
func (e *endpoint) read(header http.Header, body []byte, arrived time.Time, verify func([]byte, http.Header) error) *request {
	q := &request{arrived: arrived, body: sha256.Sum256(body)}
	event, err := value.ParseID(header.Get(standardwebhooks.HeaderWebhookID))
	if err == nil {
		q.delivery = webhook.DeliveryID(event, e.id)
		err = verify(body, header)
	}
	if err != nil {
		q.wrong = err.Error()
	}
	return q
}

// answer does what comes before the status and returns it, 0 to cut the
// connection.
type answer func(w http.ResponseWriter, req *http.Request) (status int)

// choose draws what becomes of a request. The caller holds the lock.
func (r *receivers) choose(b behaviour, now time.Time) answer {
	draw, wait := r.random.IntN(100), time.Duration(r.random.Int64N(int64(700*time.Millisecond)))
	switch {
	case b == steady:
		return answerWith(http.StatusNoContent)
	case b == returning && now.Before(r.returnsAt):
		return answerWith(http.StatusServiceUnavailable)
	case b == returning:
		return answerWith(http.StatusOK)
	case b == hanging && draw < 5:
		return answerLate(time.Hour, 0) // later than any client waits
	case draw < 18:
		return answerWith(http.StatusInternalServerError)
	case draw < 26:
		return askToRetry(http.StatusTooManyRequests, "2")
	case draw < 32:
		return askToRetry(http.StatusServiceUnavailable, "1")
	case draw < 44:
		return answerWith(0)
	case draw < 50:
		return answerLate(wait, http.StatusBadGateway)
	case draw < 54:
		return answerLate(wait, http.StatusOK)
	}
	return answerWith(http.StatusNoContent)
}

func answerWith(status int) answer {
	return func(http.ResponseWriter, *http.Request) int { return status }
}

func askToRetry(status int, seconds string) answer {
	return func(w http.ResponseWriter, _ *http.Request) int {
		w.Header().Set("Retry-After", seconds)
		return status
	}
}

func answerLate(by time.Duration, status int) answer {
	return func(_ http.ResponseWriter, req *http.Request) int {
		if pause.For(req.Context(), by) != nil {
			return 0
		}
		return status
	}
}
