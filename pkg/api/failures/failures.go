// Package failures keeps the last requests of each application that were answered
// with an error, so that an integrator finds what a program did wrong without its
// log. It promises no completeness: a broken client must cost little, so an
// application has few writes a minute over all instances, and what exceeds them
// waits in memory for the application's next request. Nothing that a client sent
// is kept but the names of its query parameters.
package failures

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// Retention is how long a failed request is kept.
	Retention = 7 * 24 * time.Hour
	// Shown is the most of an application that are shown.
	Shown = 200
	// Writes is the most of an application in a minute.
	Writes = 6

	// maxWaiting bounds what an instance keeps of an application until it may write.
	maxWaiting = 50
	// maxApplications bounds of how many an instance keeps something.
	maxApplications = 1000
	// writeTimeout bounds a write, which an answer waits for.
	writeTimeout = 200 * time.Millisecond

	// maxNames and maxName bound the names of query parameters. A longer name may be
	// a secret in the wrong place.
	maxNames = 20
	maxName  = 32
)

// FailedRequest is a request that was answered with an error.
type FailedRequest struct {
	RequestID string     `json:"requestId" doc:"The answer's X-Request-Id."`
	At        value.Time `json:"at" doc:"When it was answered."`
	Method    string     `json:"method" doc:"The method."`
	Path      string     `json:"path" doc:"The path."`
	Query     []string   `json:"query" doc:"The names of its query parameters, sorted, without their values; at most 20, of at most 32 characters."`
	Status    int        `json:"status" doc:"The status of the answer."`
	Code      string     `json:"code" doc:"The code of the error, such as validation_failed."`
}

// Names are those of the query's parameters as a [FailedRequest] has them.
func Names(query map[string][]string) []string {
	names := []string{}
	for name := range query {
		if len(name) <= maxName {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxNames)]
}

// Store keeps failed requests.
type Store interface {
	// PutFailures stores requests as the write of the number in the minute, unless
	// there is one already.
	PutFailures(ctx context.Context, organization, application value.ID, minute value.Time, number int, requests []FailedRequest) (done bool, err error)
}

// Log takes the failed requests of an instance. It is safe for concurrent use.
type Log struct {
	store  Store
	clock  func() time.Time
	logger *slog.Logger

	mu      sync.Mutex
	waiting map[value.ID]*waiting // by application
}

// waiting are an application's requests that are not written, and which of the
// minute's writes may be free.
type waiting struct {
	requests []FailedRequest
	minute   value.Time
	number   int
}

// New returns a log.
func New(store Store, clock func() time.Time, logger *slog.Logger) *Log {
	return &Log{store: store, clock: clock, logger: logger, waiting: map[value.ID]*waiting{}}
}

// Note takes a request of the application, nil if it did not fail, and writes what
// waits where a write is free. A failure of that is only logged.
func (l *Log) Note(ctx context.Context, organization, application value.ID, r *FailedRequest) {
	requests, minute, number := l.take(application, r)
	if len(requests) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	done, err := l.store.PutFailures(ctx, organization, application, minute, number, requests)
	if err != nil {
		l.logger.WarnContext(ctx, "failed requests were not written", "applicationId", application.String(), "error", err)
	}
	if !done {
		l.keep(application, requests)
	}
}

// take adds the request to those that wait, and takes all of them if a write may be
// free, which it counts.
func (l *Log) take(application value.ID, r *FailedRequest) (requests []FailedRequest, minute value.Time, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waiting[application]
	switch {
	case w == nil && r == nil:
		return nil, 0, 0
	case w == nil:
		if len(l.waiting) >= maxApplications {
			clear(l.waiting)
		}
		w = &waiting{}
		l.waiting[application] = w
	}
	if r != nil {
		w.add(*r)
	}
	if minute = value.TimeOf(l.clock().Truncate(time.Minute)); minute != w.minute {
		w.minute, w.number = minute, 0
	}
	if w.number >= Writes {
		return nil, 0, 0
	}
	requests, number = w.requests, w.number
	if w.requests = nil; len(requests) > 0 {
		w.number++
	}
	return requests, minute, number
}

// keep has the requests wait again.
func (l *Log) keep(application value.ID, requests []FailedRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.waiting[application]; w != nil {
		later := w.requests
		w.requests = nil
		w.add(append(requests, later...)...)
	}
}

// add keeps the latest.
func (w *waiting) add(requests ...FailedRequest) {
	w.requests = append(w.requests, requests...)
	w.requests = w.requests[max(0, len(w.requests)-maxWaiting):]
}
