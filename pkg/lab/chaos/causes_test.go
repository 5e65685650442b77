package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestASecondAcceptanceNeedsAProof(t *testing.T) {
	const (
		logged = `{"timestamp":"NOW","level":"DEBUG","message":"attempt","deliveryId":"ID","took":300000000,"at":"NOW","requestId":"r1"}` + "\n"
		failed = `{"timestamp":"NOW","level":"INFO","message":"WHAT","deliveryId":"ID","error":"WHAT","requestId":"REQUEST"}` + "\n"
		killed = `time=NOW level=WARN msg="instance ended" function=WHAT cause="Runtime.ExitError: RequestId: REQUEST Error: Runtime exited: signal: killed"` + "\n"
	)
	for name, tt := range map[string]struct {
		log, what, request string
		restart            time.Duration // after the acceptance; 0: none
		want               string        // in the cause
	}{
		"nothing":                           {want: unproved},
		"an attempt, and nothing else":      {log: logged, want: unproved},
		"its worker was killed":             {log: logged + killed, what: "worker", request: "r1", want: "a worker was killed"},
		"another worker was killed":         {log: logged + killed, what: "worker", request: "r2", want: unproved},
		"a dispatcher was killed":           {log: killed, what: "dispatcher", request: "r1", want: unproved},
		"a worker was killed, with no line": {log: killed, what: "worker", request: "r1", want: "a process was killed"},
		"a worker was killed in a line":     {log: logged[:90] + "\n" + killed, what: "worker", request: "r1", want: "a process was killed"},
		"the table failed":                  {log: logged + failed, what: "write the outcome of delivery", request: "r1", want: "the table"},
		"the table failed for another":      {log: logged + failed, what: "write the outcome of delivery", request: "r2", want: unproved},
		"the worker failed":                 {log: logged + failed + killed, what: "worker", request: "r1", want: unproved},
		"another attempt was recorded":      {log: logged + failed, what: "another attempt was recorded", request: "r1", want: "two messages"},
		"a restart in time":                 {log: logged, restart: storeTime, want: "the service was killed"},
		"a restart too late":                {log: logged, restart: storeTime + 1, want: unproved},
		"a restart before":                  {log: logged, restart: -1, want: unproved},
		"a restart in time, with no line":   {restart: logTime, want: "a process was killed"},
		"a restart too late, with no line":  {restart: logTime + 1, want: unproved},
		"a restart just before, likewise":   {restart: -logTime, want: "a process was killed"},
		"a restart too early, likewise":     {restart: -logTime - 1, want: unproved},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.acceptTwice()
			path := filepath.Join(t.TempDir(), "service.log")
			log := strings.NewReplacer("NOW", again.Format(time.RFC3339Nano), "ID", s.first.String(), "WHAT", tt.what, "REQUEST", tt.request).Replace(tt.log)
			if err := errors.Join(os.WriteFile(path, []byte(log), 0o600), s.readLog(path)); err != nil {
				t.Fatal(err)
			}
			if tt.restart != 0 {
				s.restarts = append(s.restarts, again.Add(tt.restart))
			}
			if got := s.causes(s.deliveries[s.first]); len(got) != 2 || got[0] != "" || !strings.Contains(got[1], tt.want) {
				t.Errorf("got %q, want none of the outcome that is stored, and %q", got, tt.want)
			}
			if got := broken(s.evidence); (len(got) == 1) != (tt.want == unproved) {
				t.Errorf("broken %q", got)
			}
		})
	}
}

func TestALineIsOfTheNearestAcceptance(t *testing.T) {
	for name, tt := range map[string]struct {
		before time.Duration // another acceptance
		logged bool
		want   string // in its cause
	}{
		"no line, a second before":      {time.Second, false, unproved},
		"both with a line, at one time": {time.Millisecond, true, "two messages"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			accepted := start.Std().Add(-tt.before)
			s.accepted[s.first] = append(s.accepted[s.first], accepted)
			if tt.logged {
				s.attempts[s.first] = append(s.attempts[s.first], attempt{DeliveryID: s.first, RequestID: "r1", Logged: accepted, At: start - 1})
				s.failed["r1"+s.first.String()] = "another attempt was recorded"
			}
			if got := s.causes(s.deliveries[s.first]); len(got) != 2 || got[0] != "" || !strings.Contains(got[1], tt.want) {
				t.Errorf("got %q, want none and %q", got, tt.want)
			}
		})
	}
}

func TestAnAnswerThatDoesNotReachTheWorkerIsACause(t *testing.T) {
	s := newStory()
	s.accepted[s.again] = append(s.accepted[s.again], start.Std())
	if got := s.causes(s.deliveries[s.again]); len(got) != 2 || !strings.Contains(got[0], "the answer") || got[1] != "" {
		t.Errorf("got %q", got)
	}
}
