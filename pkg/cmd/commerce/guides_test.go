//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
)

var (
	guides  = filepath.Join("..", "..", "api", "docs", "guides")
	fenced  = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```$")
	setting = regexp.MustCompile(`(?m)^export (\w+)=.*$`)
)

// sample is a fenced block of a guide: commands, what they print, or a program
// with the name of its file.
type sample struct{ language, file, text string }

// samplesOf returns the samples of each guide, and puts the programs into a
// folder.
func samplesOf(t *testing.T) (byGuide map[string][]sample, programs string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(guides, "*.md"))
	if err != nil || len(files) < 10 {
		t.Fatalf("found the guides %v, %v", files, err)
	}
	byGuide, programs = map[string][]sample{}, t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		commands := "" // of the guide
		for _, found := range fenced.FindAllStringSubmatch(string(text), -1) {
			s := sample{found[1], found[2], found[3]}
			byGuide[filepath.Base(file)] = append(byGuide[filepath.Base(file)], s)
			switch {
			case s.language == "sh":
				commands += s.text
			case s.file != "":
				if err := os.WriteFile(filepath.Join(programs, s.file), []byte(s.text), 0o600); err != nil {
					t.Fatal(err)
				}
			case !slices.Contains([]string{"json", "text", "http"}, s.language):
				t.Errorf("%s: a program has no name, so that nothing runs it:\n%s", file, s.text)
			}
		}
		for _, s := range byGuide[filepath.Base(file)] {
			if s.file != "" && !strings.HasPrefix(s.file, "receiver.") && filepath.Base(file) != "tools.md" && !strings.Contains(commands, " "+s.file) {
				t.Errorf("%s: no command runs %s", file, s.file)
			}
		}
	}
	return byGuide, programs
}

// needs skips a test of what readers run with programs that the machine lacks.
// The gate has them all.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		switch _, err := exec.LookPath(program); {
		case err == nil:
		case os.Getenv("CI") != "":
			t.Fatal(err)
		default:
			t.Skip(err)
		}
	}
}

// TestTheGuidesCommandsPrintWhatTheyShow runs each guide from top to bottom in a
// shell, against an organization of its own with the demo's records.
func TestTheGuidesCommandsPrintWhatTheyShow(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "jq", "python3")
	byGuide, programs := samplesOf(t)
	for guide, samples := range byGuide {
		t.Run(guide, func(t *testing.T) {
			t.Parallel()
			var script strings.Builder
			script.WriteString("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
			const end = "-- the next sample --\n"
			var wanted []sample
			for i, c := range samples {
				if c.language != "sh" {
					continue
				}
				text := setting.ReplaceAllStringFunc(c.text, func(line string) string {
					if strings.Contains(line, "$") {
						return line
					}
					return "" // what the reader has to fill in is in the environment
				})
				script.WriteString(text + "echo '" + strings.TrimSpace(end) + "'\n")
				want := sample{}
				if i+1 < len(samples) && samples[i+1].language != "sh" && samples[i+1].file == "" {
					want = samples[i+1]
				}
				wanted = append(wanted, want)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script.String(), "8000", freePort(t)))
			cmd.Dir, cmd.Env, cmd.WaitDelay = programs, append(os.Environ(), newOrganization(t).reader(t)...), time.Second
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			printed := strings.Split(string(out), end)
			if err != nil || len(printed) != len(wanted)+1 {
				t.Fatalf("%v, after\n%s\n%s", err, out, &stderr)
			}
			for i, want := range wanted {
				if got, want := shape(t, want.language, printed[i]), shape(t, want.language, want.text); got != want {
					t.Errorf("sample %d: got\n%s\nthe guide shows\n%s", i+1, got, want)
				}
			}
		})
	}
}

// TestTheReadmesTourPrintsWhatItShows runs it in a folder that has what a clone has, against a service of its own. Programs in the background print in any order.
func TestTheReadmesTourPrintsWhatItShows(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "jq")
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newOwnService(t)
	s.start(t, "--no-demo=false")
	clone := filepath.Dir(s.data)
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(filepath.Join(clone, ".build"), 0o755)
	}
	for name, to := range map[string]string{".local": s.data, "pkg": filepath.Join(root, "pkg"), ".build/commerce": self} {
		if err == nil {
			err = os.Symlink(to, filepath.Join(clone, name))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer("4000", freePort(t))
	samples, tours := fenced.FindAllStringSubmatch(string(readme), -1), 0
	for i, found := range samples {
		if found[1] != "sh" || !strings.Contains(found[3], ".local/run.json") {
			continue
		}
		tours++
		cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(ports.Replace(found[3]), ".build/commerce listen", ".build/commerce listen --addr "+ports.Replace("127.0.0.1:4000")))
		cmd.Dir, cmd.Env, cmd.WaitDelay = clone, append(os.Environ(), actAsCommand+"=1", "PYTHONUNBUFFERED="), time.Second
		out, err := cmd.CombinedOutput()
		got, want := strings.Split(shape(t, "text", string(out)), "\n"), strings.Split(shape(t, "text", samples[i+1][3]), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got %v and\n%s\nunlike what the README shows (-want +got)\n%s", err, out, diff)
		}
	}
	if tours != 1 {
		t.Errorf("found %d tours, want 1", tours)
	}
	s.stop(t)
}

// reader gives the organization what a reader of the guides has: the demo's
// records, an endpoint that got an order, and the variables for the shell.
func (s *service) reader(t *testing.T) []string {
	t.Helper()
	demo, err := os.ReadFile(filepath.Join("..", "..", "local", "runner", "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":%s}`, s.OrganizationID, bytes.ReplaceAll(demo, []byte("{{site}}"), []byte(s.SiteID))))
	for list, n := range map[string]int{"orders": 6, "products": 12, "customers": 4, "categories": 5, "invoices": 3} {
		await(t, "the demo in the lists", func() bool { return s.total(t, "/api/"+list) == n })
	}
	app := s.create(t, "/developers/applications", `{"name":"Guides"}`)
	path := "/developers/applications/" + app["id"].(string)
	if resp, answer := s.user(t, http.MethodPut, path+"/token-scopes",
		`{"scopes":["orders:read","products:read","webhooks:read","webhooks:write"]}`); resp.StatusCode != http.StatusOK {
		t.Fatalf("token scopes: got %d %s", resp.StatusCode, answer)
	}
	key := s.create(t, path+"/api-keys", `{"name":"Guides"}`)["key"].(string)
	s.ApplicationID = app["id"].(string)
	r, order := s.subscribe(t, "order.created"), value.NewID()
	s.send(t, s.order(order, "PENDING"))
	await(t, "the order's delivery", func() bool {
		_, body := s.user(t, http.MethodGet, "/developers/webhooks/events?objectId="+order.String(), "")
		return strings.Contains(string(body), "DELIVERED")
	})
	return []string{
		"API=" + s.BaseURL, "TOKEN=" + s.JWT, "KEY=" + key, "APPLICATION=" + s.ApplicationID, "ORDER=" + order.String(), "ENDPOINT=" + r.endpoint,
		"CLIENT_ID=" + app["clientId"].(string), "CLIENT_SECRET=" + app["clientSecret"].(string), "MACHINE=" + s.JWT,
	}
}

// shape is what a sample prints, less what differs from run to run: amounts, which
// have a point, stay. JSON is compared however it is indented.
func shape(t *testing.T, language, text string) string {
	t.Helper()
	if language == "" {
		return "" // the guide shows nothing
	}
	if language == "json" {
		var lines strings.Builder
		for d := jsontext.NewDecoder(strings.NewReader(text)); ; {
			v, err := d.ReadValue()
			if err == io.EOF {
				break
			}
			if err == nil {
				err = v.Compact()
			}
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			lines.WriteString(v.String() + "\n")
		}
		text = lines.String()
	}
	for _, r := range []struct{ varies, becomes string }{
		{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "ID"},
		{`<http[^>]*>`, "<URL>"},
		{`\d+-\d+-\d+T[\d:.]+Z`, "TIME"},
		{`127(\.\d+){3}|HTTP/[\d.]+`, "0"},
		{`\d+(\.\d+)?(ms|s|m)\b`, "0"},
		{`\r`, ""},
	} {
		text = regexp.MustCompile(r.varies).ReplaceAllString(text, r.becomes)
	}
	return regexp.MustCompile(`-?[\d.]+`).ReplaceAllStringFunc(text, func(number string) string {
		if strings.Contains(number, ".") {
			return number
		}
		return "0"
	})
}

// given are the ports that freePort has returned: one is free again until its
// program listens.
var given sync.Map

func freePort(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, before := given.LoadOrStore(port, true); !before {
			return port
		}
	}
}

// rotate gives the endpoint a new secret and returns it.
func (s *service) rotate(t *testing.T, endpoint string) string {
	t.Helper()
	resp, answer := s.user(t, http.MethodPost, "/developers/webhooks/endpoints/"+endpoint+"/rotate-secret", "")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("rotate the secret: got %d %s", resp.StatusCode, answer)
	}
	var rotated map[string]any
	if err := json.Unmarshal(answer, &rotated); err != nil {
		t.Fatal(err)
	}
	return rotated["secret"].(string)
}

// TestTheGuidesReceiversTakeWhatIsSignedAndNothingElse gives the receivers what
// is delivered, and what somebody made of it.
func TestTheGuidesReceiversTakeWhatIsSignedAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	tap := newWiretap(t, func(int) int { return http.StatusNoContent })
	created := s.create(t, "/developers/webhooks/endpoints?applicationId="+s.ApplicationID, fmt.Sprintf(`{"url":%q,"events":["order.created"]}`, tap.url))
	s.send(t, s.spicedOrder())
	first, oldSecret := tap.next(t), created["secret"].(string)
	newSecret := s.rotate(t, created["id"].(string))
	s.send(t, s.spicedOrder())
	second := tap.next(t) // signed by both
	_, programs := samplesOf(t)
	for language, command := range map[string][]string{
		"Go":         {"go", "run", "receiver.go"},
		"JavaScript": {"node", "receiver.mjs"},
		"Python":     {"python3", "receiver.py"},
		"PHP":        {"php", "-S", "127.0.0.1:PORT", "receiver.php"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			needs(t, command[0])
			old, changed := startReceiver(t, programs, command, oldSecret), startReceiver(t, programs, command, newSecret)
			old.take(t, "as it came", first, http.StatusNoContent)
			old.take(t, "once more", first, http.StatusNoContent)
			old.take(t, "with two signatures, by the old secret", second, http.StatusNoContent)
			changed.take(t, "with two signatures, by the new secret", second, http.StatusNoContent)
			changed.take(t, "by another secret", first, http.StatusUnauthorized)
			for what, r := range tampered(first) {
				old.take(t, what, r, http.StatusUnauthorized)
			}
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
				old.take(t, "an unsigned "+method, request{method: method, Body: "{}"}, http.StatusUnauthorized)
			}
			for _, sent := range []string{"soon", "-1", "²", "1e9", strings.Repeat("9", 400), strings.Repeat("9", 5000)} {
				old.take(t, "a time that is none", first.with("webhook-timestamp", sent), http.StatusUnauthorized)
			}
			old.take(t, "a signature in Latin-1", first.with("webhook-signature", "v1,\xe9"), http.StatusUnauthorized)
			for _, length := range []string{"x", "-1", "²", "99999"} { // and then the connection ends
				old.send(t, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "+length+"\r\n\r\n{")
			}
			old.take(t, "after all that", first, http.StatusNoContent)
			old.stop()
			got := regexp.MustCompile(`(?m)^order\.created \S+$`).FindAllString(old.out.String(), -1)
			if len(got) != 2 || strings.Contains(old.out.String(), "Traceback") {
				t.Errorf("it printed %d events, want each of two once, and no fault:\n%s", len(got), &old.out)
			}
		})
	}
}

// guideReceiver is a receiver of the guides that runs.
type guideReceiver struct {
	url  string
	out  lockedBuffer
	stop func()
}

func startReceiver(t *testing.T, folder string, command []string, secret string) *guideReceiver {
	t.Helper()
	port := freePort(t)
	r := &guideReceiver{url: "http://127.0.0.1:" + port + "/"}
	args := strings.Split(strings.ReplaceAll(strings.Join(command, " "), "PORT", port), " ")
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it is ended below, with what it started
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &r.out, &r.out
	cmd.Env = append(os.Environ(), "PORT="+port, "WEBHOOK_SECRET="+secret, "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run starts another process
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	r.stop = func() {
		if !ended {
			ended = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(r.stop)
	await(t, "the receiver listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return r
}

// send sends what may be no request, and waits for the end of what comes back.
func (r *guideReceiver) send(t *testing.T, raw string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(r.url, "http:"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err = io.WriteString(conn, raw); err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q: %v", raw, err)
	}
}

func (r *guideReceiver) take(t *testing.T, what string, as request, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), as.method, r.url, strings.NewReader(as.Body))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range as.Header {
		if strings.HasPrefix(name, "webhook-") {
			req.Header.Set(name, v)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, &r.out)
	}
	resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("%s: got %d, want %d\n%s", what, resp.StatusCode, want, &r.out)
	}
}
