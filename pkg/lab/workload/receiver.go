package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Receipt is a webhook that the receiver got.
type Receipt struct {
	Path   string // of the endpoint
	Event  value.ID
	At     time.Time
	Status int // 0: the connection was cut, or the client gave up
}

// Behaviour is how an endpoint answers: its path decides the status, 0 for a cut connection, and how long it takes. It
// is asked for one webhook at a time.
type Behaviour func(path string) (status int, wait time.Duration)

// Receiver takes the webhooks of all endpoints. It is safe for concurrent use.
type Receiver struct {
	URL    string
	server *http.Server
	answer Behaviour

	mu       sync.Mutex
	receipts []Receipt
	arrivals map[value.ID]time.Time // of the first event of each record
}

func newReceiver(ctx context.Context, answer Behaviour) (*Receiver, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &Receiver{URL: "http://" + l.Addr().String(), answer: answer, arrivals: map[value.ID]time.Time{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go r.server.Serve(l) //nolint:errcheck // it ends by Close
	return r, nil
}

// Receipts are those so far.
func (r *Receiver) Receipts() []Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.receipts)
}

// ServeHTTP takes a webhook.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	var payload struct {
		Data struct {
			Object struct {
				ID value.ID `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	event, err := value.ParseID(req.Header.Get("webhook-id"))
	if err := errors.Join(err, json.UnmarshalRead(req.Body, &payload)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, status, wait := r.note(Receipt{Path: req.URL.Path, Event: event, At: at}, payload.Data.Object.ID)
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
	r.receipts[number].Status = status
}

func (r *Receiver) note(receipt Receipt, record value.ID) (number, status int, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.arrivals[record]; !known {
		r.arrivals[record] = receipt.At
	}
	r.receipts = append(r.receipts, receipt)
	status, wait = r.answer(receipt.Path)
	return len(r.receipts) - 1, status, wait
}

// standstill is how long nothing may arrive before no more is waited for.
const standstill = time.Minute

// await waits for the events of the records, for a minute after that of the record before, and returns when they came.
func (r *Receiver) await(ctx context.Context, records []value.ID) ([]time.Time, error) {
	arrived, until := make([]time.Time, 0, len(records)), time.Now().Add(standstill)
	for len(arrived) < len(records) {
		r.mu.Lock()
		at, known := r.arrivals[records[len(arrived)]]
		r.mu.Unlock()
		if known {
			arrived, until = append(arrived, at), time.Now().Add(standstill)
			continue
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("the events of %d of %d records arrived, and no more within %s", len(arrived), len(records), standstill)
		}
		if err := pause.For(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return arrived, nil
}
