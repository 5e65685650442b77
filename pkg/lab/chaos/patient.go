package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/value"
)

// patient is an endpoint that is well, and measures how long its events take
// from the send of their record.
type patient struct {
	of     *organization
	server *http.Server
	url    string

	mu    sync.Mutex
	sent  map[value.ID]time.Time // by record; those that have come are deleted
	took  []time.Duration
	total int
}

func startPatient(ctx context.Context) (*patient, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	p := &patient{url: "http://" + l.Addr().String(), sent: map[value.ID]time.Time{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(l) //nolint:errcheck // it ends by Close
	return p, nil
}

// ServeHTTP takes an event and notes how long it took.
func (p *patient) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var event struct {
		Data struct {
			Object struct {
				ID value.ID `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	if err != nil || json.Unmarshal(body, &event) != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	id, now := event.Data.Object.ID, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, waits := p.sent[id]; waits {
		p.took = append(p.took, now.Sub(at))
		delete(p.sent, id)
	}
	w.WriteHeader(http.StatusNoContent)
}

// latencies returns how long events took, in ascending order, and how many
// were sent.
func (p *patient) latencies() (took []time.Duration, sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took = slices.Clone(p.took)
	slices.Sort(took)
	return took, p.total
}

func (p *patient) note(id value.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[id], p.total = time.Now(), p.total+1
}

// waits tells whether the event of a record has not come yet.
func (p *patient) waits(id value.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waits := p.sent[id]
	return waits
}

// forget drops what was measured and returns how long the last event took.
func (p *patient) forget() (last time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.took) > 0 {
		last = p.took[len(p.took)-1]
	}
	p.took, p.total = nil, 0
	return last
}

// percentile is the time within which so many of a hundred came.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
