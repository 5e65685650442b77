package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func ask(t *testing.T, handler http.HandlerFunc) (*answers, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	b := &bench{Config: Config{Duration: 100 * time.Millisecond}}
	return b.ask(t.Context(), server.URL, "key", []string{"/a?x=1", "/b"})
}

func TestALoadKeepsItsConnectionsAndAsksForAllTargets(t *testing.T) {
	var mu sync.Mutex
	clients, targets := map[string]bool{}, map[string]int{}
	o, err := ask(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clients[r.RemoteAddr] = true
		targets[r.Header.Get("X-API-Key")+" "+r.URL.String()]++
		fmt.Fprint(w, `{"id":"a"}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := targets["key /a?x=1"] + targets["key /b"]
	if len(clients) != connections || len(targets) != 2 || asked != o.all {
		t.Errorf("got %d requests by %d connections for %v, want %d on %d connections for 2 targets", asked, len(clients), targets, o.all, connections)
	}
	if counted := len(o.latencies); counted == 0 || counted >= o.all {
		t.Errorf("counted %d of %d answers, want those after the warm-up", counted, o.all)
	}
}

func TestALoadFailsWithAWrongAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another status":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "status 503, connection closed: false, busy"},
		"another body":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[]}`) }, "no record"},
		"a cut connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"a closed one":     {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }, "closed: true"},
	} {
		if _, err := ask(t, row.answer); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestNumbersAreWrittenForReading(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d): got %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{40 * time.Millisecond: "40 ms", 1250 * time.Microsecond: "1.25 ms", 50 * time.Microsecond: "50 µs"} {
		if got := milliseconds(d); got != want {
			t.Errorf("milliseconds(%v): got %s, want %s", d, got, want)
		}
	}
}
