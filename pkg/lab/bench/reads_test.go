package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

const connections = 4

func ask(t *testing.T, handler http.HandlerFunc) (figures, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	a := &asker{base: server.URL, key: "key", targets: []string{"/a?x=1", "/b"}, connections: connections}
	return a.run(t.Context(), 300*time.Millisecond)
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
	// The transport frees a connection just after its answer was read, so that the next request may open another.
	if most := 2 * connections; len(clients) < connections || len(clients) > most || asked <= most || len(targets) != 2 || asked != o.of {
		t.Errorf("got %d requests by %d connections for %v, want %d on %d to %d connections for 2 targets", asked, len(clients), targets, o.of, connections, most)
	}
	if counted := len(o.latencies); counted == 0 || counted >= o.of {
		t.Errorf("counted %d of %d answers, want those after the warm-up", counted, o.of)
	}
}

func TestALoadFailsWithARequest(t *testing.T) {
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another status":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "answered 503"},
		"a cut connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		if _, err := ask(t, row.answer); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestARowIsOfOneEvent(t *testing.T) {
	rows := newTable("Deliveries", "events", "a second", "p50", "p99")
	f := figures{of: 10, perSecond: 99.6, latencies: workload.Latencies{time.Millisecond, 2500 * time.Microsecond}}
	rows.add("burst", 10, f, 5*time.Millisecond, 20*time.Millisecond, faults.Units{Calls: 15, Reads: 80, Writes: 40}, 3000)
	var out strings.Builder
	rows.print(&out)
	if want := "| burst      | 10     | 100      | 1.00 ms | 2.50 ms | 0.50 ms | 2.00 ms | 1.50  | 4.00        | 8.00       | 300       | 3.65        |\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant a row\n%s", &out, want)
	}
}
