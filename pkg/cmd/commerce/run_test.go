//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/runner"
)

func TestASecondRunLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	other := filepath.Join(t.TempDir(), "other")
	inUse := fmt.Sprintf("another run (process %d) uses the data folder %s", s.cmd.Process.Pid, s.data)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the same":             {s.args(), inUse},
		"another port":         {append(s.args(), "--addr", "127.0.0.1:0"), inUse},
		"afresh":               {append(s.args(), "--addr", "127.0.0.1:0", "--fresh"), inUse},
		"another data folder":  {append(s.args(), "--data", other), s.addr + " is in use by another program"},
		"another folder fresh": {append(s.args(), "--data", other, "--fresh"), s.addr + " is in use by another program"},
	} {
		if said := refused(t, nil, c.args...); !strings.Contains(said, c.want) {
			t.Errorf("%s: got %q, want %q", name, said, c.want)
		}
	}
	info, err := runner.ReadInfo(s.data)
	if err != nil || *info != *s.Info {
		t.Errorf("the first run's file: got %+v, %v; want it unchanged", info, err)
	}
	if resp, body := s.user(t, http.MethodGet, "/developers/applications/"+s.ApplicationID, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("the first run's application: got %d %s", resp.StatusCode, body)
	}
	s.stop(t)
}

// spoil overwrites a part of the only file that the pattern matches.
func spoil(pattern string, at int64, with string) func(*testing.T, string) {
	return func(t *testing.T, data string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		file, err := os.OpenFile(found[0], os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if at < 0 {
			err = file.Truncate(0)
		}
		if _, werr := file.WriteAt([]byte(with), max(at, 0)); err != nil || werr != nil {
			t.Fatal(err, werr)
		}
	}
}

func TestWhatKeepsARunFromStartingIsSaidAndNothingStaysBehind(t *testing.T) {
	t.Parallel()
	good := newOwnService(t)
	good.start(t)
	good.send(t, good.order(value.NewID(), "PENDING"))
	good.stop(t)

	template, err := filepath.Abs("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	noise := strings.Repeat("noise ", 2000)
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		env   []string
		flags []string
		want  string
	}{
		"table file's head":        {spoil: spoil("table/tables.db", 0, "no database"), want: "tables.db is damaged"},
		"table file's middle":      {spoil: spoil("table/tables.db", 20000, noise), want: "tables.db is damaged"},
		"queue journal's head":     {spoil: spoil("queues/queues.jsonl", 0, "no journal"), want: "unreadable queue journal"},
		"queue journal's middle":   {spoil: spoil("queues/queues.jsonl", 300, "noise"), want: "--fresh"},
		"state that is no JSON":    {spoil: spoil("state.json", -1, "{"), want: "state.json is damaged"},
		"state that lacks a key":   {spoil: spoil("state.json", -1, `{"format":2,"serviceKey":"AAAA"}`), want: "state.json is damaged"},
		"state of another version": {spoil: spoil("state.json", -1, `{"serviceKey":"AAAA"}`), want: "another version of the service wrote"},
		"state that is gone":       {spoil: func(t *testing.T, data string) { remove(t, data, "state.json") }, want: "state.json is gone"},
		"issuer's key":             {spoil: spoil("issuer.pem", -1, "no key"), want: "issuer.pem is damaged"},
		"no template":              {flags: []string{"--template", "nowhere.yaml"}, want: "start in the folder of the repository"},
		"template that is none":    {flags: []string{"--template", "../../../go.mod"}, want: "template ../../../go.mod: "},
		"no npm":                   {spoil: func(t *testing.T, data string) { remove(t, data, "bin") }, env: []string{"PATH=/nowhere"}, want: "npm is needed once"},
		"data folder is a file":    {flags: []string{"--data", template}, want: "make the data folder"},
		"address of another host":  {flags: []string{"--addr", "192.0.2.1:3000"}, want: "--addr 192.0.2.1:3000"},
		"table server elsewhere":   {env: []string{"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"}, want: "table server http://127.0.0.1:1"},
		"queue server elsewhere":   {env: []string{"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:1"}, want: "queue server http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(data, os.DirFS(good.data)); err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				c.spoil(t, data)
			}
			args := append([]string{"run", "--addr", "127.0.0.1:0", "--data", data, "--template", template}, c.flags...)
			if said := refused(t, c.env, args...); !strings.Contains(said, c.want) {
				t.Errorf("got %q, want it to contain %q", said, c.want)
			}
			if _, err := os.Stat(filepath.Join(data, "run.json")); !os.IsNotExist(err) {
				t.Errorf("run.json: got %v, want none", err)
			}
		})
	}
}

func remove(t *testing.T, data, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(data, name)); err != nil {
		t.Fatal(err)
	}
}

func TestARunGoesOnWithoutWhatItCanMakeAgain(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	id, statuses := value.NewID(), []string{"PENDING", "CONFIRMED"}
	s.send(t, s.order(id, statuses[0]))
	await(t, "the order", func() bool { return s.total(t, "/api/orders") == 1 })
	s.stop(t)
	for name, spoil := range map[string]func(*testing.T, string){
		"checkpoints that are no JSON": spoil("checkpoints/IndexerChanges.checkpoint", 0, "noise"),
		"no checkpoints":               func(t *testing.T, data string) { remove(t, data, "checkpoints") },
		"a torn journal": func(t *testing.T, data string) {
			found, err := filepath.Glob(filepath.Join(data, "queues/*.jsonl"))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			journal, err := os.OpenFile(found[0], os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			if _, err := journal.WriteString("torn"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		spoil(t, s.data)
		s.start(t)
		if got := s.total(t, "/api/orders"); got != 1 {
			t.Errorf("%s: got %d orders, want 1", name, got)
		}
		statuses = append(statuses[1:], statuses[0])
		s.send(t, s.order(id, statuses[0]))
		await(t, "a change after "+name, func() bool { return s.total(t, "/api/orders?status="+statuses[0]) == 1 })
		s.stop(t)
	}
}

func TestDataPersistsUntilAFreshStart(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	before := *s.Info
	r := s.subscribe(t, "order.created")
	s.send(t, s.order(value.NewID(), "PENDING"))
	var delivered page
	await(t, "the delivery", func() bool {
		time.Sleep(100 * time.Millisecond)
		s.history(t, "/developers/webhooks/events?status=DELIVERED", &delivered)
		return delivered.Meta.Total == 1
	})
	// What nobody takes stays in its queue.
	dead := strings.Replace(s.RecordsQueueURL, "RecordsQueue", "RecordsDLQ", 1)
	s.sendTo(t, dead, "a message")
	own := filepath.Join(s.data, "notes.txt")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	if _, err := runner.ReadInfo(s.data); err == nil {
		t.Error("run.json is there after the end")
	}

	s.start(t)
	after := *s.Info
	after.JWT, before.JWT, after.DynamoDBEndpoint, before.DynamoDBEndpoint = "", "", "", ""
	if after != before {
		t.Errorf("after a restart: got %+v, want %+v", after, before)
	}
	if got := s.total(t, "/api/orders"); got != 1 {
		t.Errorf("orders with the same key: got %d, want 1", got)
	}
	var delivery, endpoint map[string]any
	s.history(t, "/developers/webhooks/events/"+delivered.Data[0]["id"].(string), &delivery)
	if delivery["status"] != "DELIVERED" || delivery["payload"] == nil {
		t.Errorf("history: got %v, want the finished delivery", delivery)
	}
	await(t, "its counters", func() bool {
		s.history(t, "/developers/webhooks/endpoints/"+r.endpoint, &endpoint)
		return endpoint["successCount"] == 1.0
	})
	if got := s.messages(t, dead); got != 1 {
		t.Errorf("messages of the dead letter queue: got %d, want 1", got)
	}
	// The endpoint's secret can still be read: its next event is signed.
	s.send(t, s.order(value.NewID(), "PENDING"))
	await(t, "an event after the restart", func() bool { return len(r.Events()) == 2 })
	s.stop(t)

	s.start(t, "--fresh")
	if s.OrganizationID == before.OrganizationID || s.APIKey == before.APIKey {
		t.Errorf("afresh: got the organization %s and the key %s again", s.OrganizationID, s.APIKey)
	}
	if resp, _ := s.do(t, http.MethodGet, "/api/me", "", map[string]string{"X-API-Key": before.APIKey}); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the old key afresh: got %d, want 401", resp.StatusCode)
	}
	if got := s.messages(t, dead); got != 0 {
		t.Errorf("messages of the dead letter queue afresh: got %d, want 0", got)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
		t.Errorf("somebody else's file: got %q, %v", text, err)
	}
	s.stop(t)
}

func TestThePrintedKeyIsGoodWhateverBecameOfTheLast(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	works := func(what string) {
		t.Helper()
		if resp, body := s.do(t, http.MethodGet, "/api/me", "", map[string]string{"X-API-Key": s.APIKey}); resp.StatusCode != http.StatusOK {
			t.Errorf("the key after %s: got %d %s", what, resp.StatusCode, body)
		}
	}
	works("the start")
	var keys page
	path, application := "/developers/applications/"+s.ApplicationID, s.ApplicationID
	s.history(t, path+"/api-keys", &keys)
	s.user(t, http.MethodPost, path+"/api-keys/"+keys.Data[0]["id"].(string)+"/revoke", "")
	s.stop(t)
	s.start(t)
	works("its revocation")
	if s.ApplicationID != application {
		t.Errorf("the application: got %s, want %s as before", s.ApplicationID, application)
	}
	s.user(t, http.MethodDelete, path, "")
	s.stop(t)
	s.start(t)
	works("the deletion of its application")
	s.stop(t)
}

func TestTheGreetingsRequestsWork(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.process = launch(t, nil, s.args()...) // with the demo
	await(t, "health", func() bool {
		resp, err := http.Get("http://" + s.addr + "/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	if _, err := runner.ReadInfo(s.data); err != nil {
		t.Errorf("the service is healthy, and yet: %v", err)
	}
	await(t, "the greeting", func() bool { return strings.Contains(s.output.String(), "Ctrl-C stops it.") })
	tried := 0
	for line := range strings.Lines(s.output.String()) {
		parts := strings.Split(strings.TrimSpace(line), "'")
		if len(parts) != 5 || strings.TrimSpace(parts[0]) != "curl -H" {
			continue
		}
		name, v, _ := strings.Cut(parts[1], ": ")
		s.Info = &runner.Info{}
		var p page
		s.read(t, parts[3], map[string]string{name: v}, &p)
		if len(p.Data) == 0 {
			t.Errorf("%s: the page is empty", line)
		}
		tried++
	}
	if tried != 3 {
		t.Errorf("found %d requests in the greeting, want 3\n%s", tried, &s.output)
	}
	s.stop(t)
}

func TestAKilledRunTakesItsTableServerWithIt(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	id := value.NewID()
	s.send(t, s.order(id, "PENDING"))
	s.signal(t, syscall.SIGKILL)
	if code := s.exit(t); code != -1 {
		t.Errorf("exit code %d, want that of a kill", code)
	}
	s.start(t)
	await(t, "what was sent before", func() bool { return s.total(t, "/api/orders") == 1 })
	s.stop(t)
}

func TestARunEndsWhenItsTableServerDies(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	for _, child := range childrenOf(t, s.cmd.Process.Pid) {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.exit(t); code != 1 || !strings.Contains(s.output.String(), "the table server ended: signal: killed") {
		t.Errorf("exit code %d and %q, want 1 and the reason", code, &s.output)
	}
}

// childrenOf finds the processes whose parent is pid.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(entries) == 0 {
		t.Skip("no /proc here")
	}
	var children []int
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err != nil {
			continue // it has ended
		}
		var own, parent int
		var state string
		_, rest, _ := bytes.Cut(text, []byte(") "))
		if _, err := fmt.Sscan(string(rest), &state, &parent); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(text), &own); err == nil && parent == pid {
			children = append(children, own)
		}
	}
	return children
}

// hang opens a request and never ends it.
func (s *ownService) hang(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.BaseURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /developers/applications HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
}

func TestASecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	s.hang(t)
	time.Sleep(100 * time.Millisecond) // the request must have arrived
	s.interrupt(t)
	time.Sleep(500 * time.Millisecond)
	select {
	case <-s.ended:
		t.Fatal("ended with a request in progress")
	default:
	}
	s.interrupt(t)
	if code := s.exit(t); code != -1 {
		t.Errorf("exit code %d, want that of the signal and no wait for the request", code)
	}
}
