package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/bench"
)

func serve(t *testing.T, handler http.HandlerFunc) *bench.Load {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &bench.Load{
		Address: strings.TrimPrefix(server.URL, "http://"), Targets: []string{"/a?x=1", "/b"}, Header: http.Header{"X-Api-Key": {"key"}},
		Pace: bench.Pace{Workers: 3, Duration: 100 * time.Millisecond},
	}
}

func TestALoadKeepsItsConnectionsAndAsksForAllTargets(t *testing.T) {
	var mu sync.Mutex
	clients, targets := map[string]bool{}, map[string]int{}
	load := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		clients[r.RemoteAddr] = true
		targets[r.Header.Get("X-API-Key")+" "+r.URL.String()]++
		mu.Unlock()
		fmt.Fprint(w, "answer")
	})
	outcome, err := load.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := targets["key /a?x=1"] + targets["key /b"]
	if len(clients) != 3 || len(targets) != 2 || asked < outcome.Requests || asked > outcome.Requests+3 {
		t.Errorf("got %d requests by %d connections for %v, want all on 3 connections for 2 targets", outcome.Requests, len(clients), targets)
	}
	if outcome.Requests == 0 || outcome.Failures != 0 || outcome.Bytes != int64(6*outcome.Requests) {
		t.Errorf("got %d requests, %d failures, %d bytes, want 6 bytes for each", outcome.Requests, outcome.Failures, outcome.Bytes)
	}
}

func TestALoadDoesNotCountItsWarmup(t *testing.T) {
	var answered atomic.Int64
	load := serve(t, func(http.ResponseWriter, *http.Request) { answered.Add(1) })
	load.Warmup = load.Duration
	outcome, err := load.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all := int(answered.Load()); outcome.Requests == 0 || outcome.Requests >= all-3 {
		t.Errorf("counted %d of %d requests, want less than all", outcome.Requests, all)
	}
}

func TestALoadCountsWrongAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another status": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "status 503: busy"},
		"another body":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no") }, "got no"},
	} {
		t.Run(name, func(t *testing.T) {
			load := serve(t, row.answer)
			load.Check = func(_ http.Header, body []byte) error { return fmt.Errorf("got %s", body) }
			outcome, err := load.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Failures < outcome.Requests || outcome.Failures == 0 || !strings.Contains(outcome.Failure.Error(), row.want) {
				t.Errorf("got %d failures of %d, the first %v; want all, with %q", outcome.Failures, outcome.Requests, outcome.Failure, row.want)
			}
		})
	}
}

func TestALoadFailsWhenAConnectionBreaks(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"before an answer": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"after an answer":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
	} {
		t.Run(name, func(t *testing.T) {
			if outcome, err := serve(t, answer).Run(t.Context()); err == nil {
				t.Errorf("got %d requests and no error, want one", outcome.Requests)
			}
		})
	}
}

func TestALoadEndsWithItsContext(t *testing.T) {
	load := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	load.Duration = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := load.Run(ctx); err == nil {
		t.Error("got no error from a load that was interrupted, want one")
	}
}
