package chaos

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// temper is how a receiver behaves.
type temper uint8

const (
	steady    temper = iota // answers everything with success
	flaky                   // fails half of the requests, in every way
	hanging                 // like flaky, and some of its answers never come
	dead                    // refuses connections
	returning               // answers 503 for a while, then with success
)

// request is one that a receiver got, as it knows of it itself.
type request struct {
	row      value.ID
	arrived  time.Time
	answered time.Time // zero: the connection was cut, or the client gave up
	status   int       // 0 likewise
	body     [sha256.Size]byte
	wrong    string // what is wrong with it, "" for nothing
}

func (r *request) accepted() bool { return r.status >= 200 && r.status <= 299 }

// receivers is a server for all endpoints that are not dead. It is safe for
// concurrent use.
type receivers struct {
	server *http.Server
	base   string

	mu        sync.Mutex
	random    *rand.Rand
	returnsAt time.Time // when those that return do
	endpoints []*endpoint
	requests  []*request
}

func startReceivers(ctx context.Context, seed uint64) (*receivers, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receivers{base: "http://" + l.Addr().String(), random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // trouble is to repeat
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go r.server.Serve(l) //nolint:errcheck // it ends by Close
	return r, nil
}

// comeBack says when those that return do.
func (r *receivers) comeBack(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returnsAt = at
}

func (r *receivers) close() error { return r.server.Close() }

// url is where the endpoint of that number is reached. The port of a dead one
// is never listened on.
func (r *receivers) url(number int, t temper) string {
	if t == dead {
		return "http://127.0.0.1:1/" + strconv.Itoa(number)
	}
	return r.base + "/" + strconv.Itoa(number)
}

// add serves an endpoint under its number, which is its place.
func (r *receivers) add(e *endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoints = append(r.endpoints, e)
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

// ServeHTTP takes a webhook and answers as the endpoint's temper says.
func (r *receivers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	e := r.endpoint(req.URL.Path)
	if e == nil {
		http.NotFound(w, req)
		return
	}
	q := e.read(req, body, arrived)
	r.mu.Lock()
	r.requests = append(r.requests, q)
	does := r.choose(e.temper, arrived)
	r.mu.Unlock()
	status := does(w, req)
	if status == 0 || req.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_ = http.NewResponseController(w).Flush() // a client that is gone does not count it
	r.mu.Lock()
	defer r.mu.Unlock()
	q.status, q.answered = status, time.Now()
}

func (r *receivers) endpoint(path string) *endpoint {
	number, err := strconv.Atoi(strings.TrimPrefix(path, "/"))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || number < 0 || number >= len(r.endpoints) {
		return nil
	}
	return r.endpoints[number]
}

// read checks a request as its receiver would.
func (e *endpoint) read(req *http.Request, body []byte, arrived time.Time) *request {
	q := &request{arrived: arrived, body: sha256.Sum256(body)}
	event, err := value.ParseID(req.Header.Get(standardwebhooks.HeaderWebhookID))
	if err == nil {
		q.row = webhook.DeliveryID(event, e.id)
		err = e.verify.Verify(body, req.Header)
	}
	if err != nil {
		q.wrong = err.Error()
	}
	return q
}

// behaviour does what comes before an answer and returns its status, 0 to cut
// the connection.
type behaviour func(w http.ResponseWriter, req *http.Request) int

// choose draws what becomes of a request. The caller holds the lock.
func (r *receivers) choose(t temper, now time.Time) behaviour {
	draw, wait := r.random.IntN(100), time.Duration(r.random.Int64N(int64(700*time.Millisecond)))
	switch {
	case t == steady:
		return answering(http.StatusNoContent)
	case t == returning && now.Before(r.returnsAt):
		return answering(http.StatusServiceUnavailable)
	case t == returning:
		return answering(http.StatusOK)
	case t == hanging && draw < 5:
		return hang
	case draw < 18:
		return answering(http.StatusInternalServerError)
	case draw < 26:
		return afterwards(http.StatusTooManyRequests, "2")
	case draw < 32:
		return afterwards(http.StatusServiceUnavailable, "1")
	case draw < 44:
		return func(http.ResponseWriter, *http.Request) int { return 0 }
	case draw < 50:
		return late(wait, http.StatusBadGateway)
	case draw < 54:
		return late(wait, http.StatusOK)
	}
	return answering(http.StatusNoContent)
}

func answering(status int) behaviour {
	return func(http.ResponseWriter, *http.Request) int { return status }
}

func afterwards(status int, seconds string) behaviour {
	return func(w http.ResponseWriter, _ *http.Request) int {
		w.Header().Set("Retry-After", seconds)
		return status
	}
}

func late(by time.Duration, status int) behaviour {
	return func(_ http.ResponseWriter, req *http.Request) int {
		if pause.For(req.Context(), by) != nil {
			return 0
		}
		return status
	}
}

// hang never answers.
func hang(_ http.ResponseWriter, req *http.Request) int {
	<-req.Context().Done()
	return 0
}
