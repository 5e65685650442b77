package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Serve serves HTTP on a free port of the loopback interface until the server is closed, and returns its URL.
func Serve(ctx context.Context, handler http.Handler) (*http.Server, string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for webhooks: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l) //nolint:errcheck // it ends by Close
	return server, "http://" + l.Addr().String(), nil
}

// Receiver takes the webhooks of all tenants. It answers 200 at once and notes when the first event of each record
// arrived.
type Receiver struct {
	server *http.Server
	url    string

	mu       sync.Mutex
	changed  chan struct{}
	arrivals map[value.ID]time.Time
	again    int   // receipts of a record that had arrived
	wrong    error // the first receipt that was no event of a record
}

// NewReceiver starts a receiver.
func NewReceiver(ctx context.Context) (r *Receiver, err error) {
	r = &Receiver{changed: make(chan struct{}, 1), arrivals: map[value.ID]time.Time{}}
	r.server, r.url, err = Serve(ctx, r)
	return r, err
}

// Close ends the receiver.
func (r *Receiver) Close() error { return r.server.Close() }

// ServeHTTP takes a webhook.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	var payload struct {
		Data struct {
			Object struct {
				ID value.ID `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	err = json.Unmarshal(body, &payload)
	if record := payload.Data.Object.ID; err == nil && !record.IsZero() {
		r.note(record, at)
		return
	}
	err = cmp.Or(err, errors.New("it has no record"))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = errors.Join(r.wrong, fmt.Errorf("a receiver got %.200s: %w", body, err))
}

func (r *Receiver) note(record value.ID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.arrivals[record]; known {
		r.again++
	} else {
		r.arrivals[record] = at
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Again is how many receipts were of an event that had arrived before.
func (r *Receiver) Again() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again
}

// standstill is how long nothing may arrive before no more is waited for.
const standstill = time.Minute

// Await waits for the events of the records, as long as some arrive, and returns when they came.
func (r *Receiver) Await(ctx context.Context, records []value.ID) ([]time.Time, error) {
	timeout := time.NewTimer(standstill)
	defer timeout.Stop()
	arrived := make([]time.Time, 0, len(records))
	for before := -1; ; {
		r.mu.Lock()
		wrong, all := r.wrong, len(r.arrivals)
		for n := len(arrived); n < len(records); n++ {
			at, known := r.arrivals[records[n]]
			if !known {
				break
			}
			arrived = append(arrived, at)
		}
		r.mu.Unlock()
		if wrong != nil || len(arrived) == len(records) {
			return arrived, wrong
		}
		if all > before {
			timeout.Reset(standstill)
			before = all
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("the events of %d of %d records arrived, and no more within %s", len(arrived), len(records), standstill)
		}
	}
}
