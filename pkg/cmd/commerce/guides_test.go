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
	guides = filepath.Join("..", "..", "api", "docs", "guides")
	fenced = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```$")
	// sideBySide finds a sample in each language: its blocks have nothing between them.
	sideBySide = regexp.MustCompile("(?m)" + strings.ReplaceAll("^```sh.*\nBODY```\n\n```python .*\nBODY```\n\n```javascript .*\nBODY```\n\n```go .*\nBODY```\n\n```php .*\nBODY```$",
		"BODY", "(?:[^`\n].*\n|\n)*"))
	setting = regexp.MustCompile(`(?m)^export (\w+)=.*$`)
)

// languages are those of a sample that is there in each, in this order.
var languages = []string{"sh", "python", "javascript", "go", "php"}

// sample is a fenced block of a guide: commands, what they print, or a program
// with the name of its file.
type sample struct{ language, file, text string }

// command is how the sample is run: a program by its first line.
func (s sample) command() string {
	if s.file == "" {
		return s.text
	}
	first, _, _ := strings.Cut(s.text, "\n")
	return regexp.MustCompile(`^(<\?php )?(#|//) `).ReplaceAllLiteralString(first, "") + "\n"
}

// choices is a sample by its language: commands that all readers run, and what is
// printed, are there in one.
type choices []sample

func (c choices) in(language string) sample {
	if len(c) == 1 {
		return c[0]
	}
	return c[slices.Index(languages, language)]
}

// listens tells whether the sample is a receiver, which has a test of its own.
func (c choices) listens() bool { return strings.HasPrefix(c.in("php").file, "receiver.") }

// shows tells whether the sample is what another one prints.
func (c choices) shows() bool {
	return slices.Contains([]string{"json", "text", "http"}, c[0].language)
}

// samplesOf returns the samples of each guide.
func samplesOf(t *testing.T) map[string][]choices {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(guides, "*.md"))
	if err != nil || len(files) < 10 {
		t.Fatalf("found the guides %v, %v", files, err)
	}
	byGuide := map[string][]choices{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sides := sideBySide.FindAllIndex(text, -1)
		var all []choices
		for _, at := range fenced.FindAllSubmatchIndex(text, -1) {
			part := func(i int) string { return string(text[max(at[i], 0):max(at[i+1], 0)]) }
			s := sample{part(2), part(4), part(6)}
			if slices.ContainsFunc(sides, func(side []int) bool { return side[0] < at[0] && at[1] <= side[1] }) {
				all[len(all)-1] = append(all[len(all)-1], s)
			} else {
				all = append(all, choices{s})
			}
		}
		byGuide[filepath.Base(file)] = all
	}
	return byGuide
}

// programs puts those of all guides into a folder, to listen on a port of their own.
func programs(t *testing.T) (folder, port string) {
	t.Helper()
	folder, port = t.TempDir(), freePort(t)
	for _, samples := range samplesOf(t) {
		for _, s := range slices.Concat(samples...) {
			if s.file == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(folder, s.file), []byte(strings.ReplaceAll(s.text, "8000", port)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder, port
}

// needs skips a test of what readers run with programs that the machine lacks.
// The gate and the check of a release have them all.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		switch _, err := exec.LookPath(program); {
		case err == nil:
		case os.Getenv("CI") != "" || os.Getenv("SAMPLES") == "all":
			t.Fatal(err)
		default:
			t.Skip(err)
		}
	}
}

func TestEveryProgramOfTheGuidesIsRun(t *testing.T) {
	inAll := []string{"first-integration.md", "lists.md", "sync.md", "webhooks.md"}
	for guide, samples := range samplesOf(t) {
		commands := ""
		for _, c := range samples {
			commands += c.in("sh").command()
		}
		for _, c := range samples {
			for _, s := range c {
				switch {
				case s.file == "" && s.language != "sh" && !c.shows():
					t.Errorf("%s: a program has no name, so that nothing runs it:\n%s", guide, s.text)
				case len(c) == 1 && slices.Contains(languages[1:], s.language) && slices.Contains(inAll, guide):
					t.Errorf("%s: %s is not there in each language, one behind the other", guide, s.file)
				case len(c) > 1 && s.file != "" && !strings.Contains(s.command(), s.file):
					t.Errorf("%s: the first line of %s does not run it", guide, s.file)
				case len(c) == 1 && s.file != "" && guide != "tools.md" && !strings.Contains(commands, " "+s.file):
					t.Errorf("%s: no command runs %s", guide, s.file)
				}
			}
		}
	}
}

// chosenLanguages are those in which the gate runs the samples. SAMPLES=all takes
// every language.
func chosenLanguages() []string {
	if os.Getenv("SAMPLES") == "all" {
		return languages
	}
	return languages[:2]
}

// TestTheGuidesCommandsPrintWhatTheyShow runs each guide from top to bottom, as a
// reader does who chose a language, against an organization of its own with the
// demo's records.
func TestTheGuidesCommandsPrintWhatTheyShow(t *testing.T) {
	t.Parallel()
	for guide, samples := range samplesOf(t) {
		for i, language := range chosenLanguages() {
			if !slices.ContainsFunc(samples, func(c choices) bool { return !c.listens() && (len(c) > 1 || i == 0 && c[0].language == "sh") }) {
				continue // nothing is in this language
			}
			t.Run(guide+", "+language, func(t *testing.T) {
				t.Parallel()
				needs(t, "bash", "curl", "jq", "python3", strings.Fields(receiverIn(t, language).command())[0])
				runGuide(t, samples, language)
			})
		}
	}
}

func runGuide(t *testing.T, samples []choices, language string) {
	t.Helper()
	folder, port := programs(t)
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	const end = "-- the next sample --\n"
	var wanted []sample
	for i, c := range samples {
		s := c.in(language)
		if len(c) == 1 && s.language != "sh" || c.listens() {
			continue
		}
		text := setting.ReplaceAllStringFunc(s.command(), func(line string) string {
			if strings.Contains(line, "$") {
				return line
			}
			return "" // what the reader has to fill in is in the environment
		})
		script.WriteString(text + "echo '" + strings.TrimSpace(end) + "'\n")
		want := sample{}
		if i+1 < len(samples) && samples[i+1].shows() {
			want = samples[i+1][0]
		}
		wanted = append(wanted, want)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script.String(), "8000", port))
	cmd.Dir, cmd.Env, cmd.WaitDelay = folder, append(os.Environ(), newOrganization(t).reader(t)...), time.Second
	cmd.Env = append(cmd.Env, "RECEIVER="+strings.ReplaceAll(receiverIn(t, language).command(), "$PORT", port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it leaves a receiver behind
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	printed := strings.Split(string(out), end)
	if err != nil || len(printed) != len(wanted)+1 {
		t.Fatalf("%v, after\n%s\n%s", err, out, &stderr)
	}
	for i, want := range wanted {
		if got, want := shape(t, want.language, printed[i]), shape(t, want.language, want.text); got != want {
			t.Errorf("sample %d: got\n%s\nthe guide shows\n%s", i+1, got, want)
		}
	}
}

// receiverIn returns the receiver of a language: the shell has that in Python.
func receiverIn(t *testing.T, language string) sample {
	t.Helper()
	if language == "sh" {
		language = "python"
	}
	for _, c := range samplesOf(t)["webhooks.md"] {
		if len(c) > 1 && c.listens() {
			return c.in(language)
		}
	}
	t.Fatal("webhooks.md has no receiver")
	return sample{}
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
	folder, _ := programs(t)
	t.Run("sh", func(t *testing.T) {
		t.Parallel()
		needs(t, "bash", "openssl")
		takes := func(what string, r request, secret string, want bool) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "bash", "verify.sh", r.Header["webhook-id"], r.Header["webhook-timestamp"], r.Header["webhook-signature"])
			cmd.Dir, cmd.Env, cmd.Stdin = folder, append(os.Environ(), "WEBHOOK_SECRET="+secret), strings.NewReader(r.Body)
			if out, err := cmd.Output(); (err == nil) != want || (string(out) == "verified\n") != want {
				t.Errorf("%s: got %s, %v", what, out, err)
			}
		}
		takes("as it came", first, oldSecret, true)
		takes("with two signatures, by the old secret", second, oldSecret, true)
		takes("with two signatures, by the new secret", second, newSecret, true)
		takes("by another secret", first, newSecret, false)
		for what, r := range tampered(first) {
			takes(what, r, oldSecret, false)
		}
		takes("a time that is a command", first.with("webhook-timestamp", "a[$(touch ran)]"), oldSecret, false)
		if _, err := os.Stat(filepath.Join(folder, "ran")); err == nil {
			t.Error("it ran the time")
		}
	})
	for _, language := range languages[1:] {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			command := strings.Fields(receiverIn(t, language).command())
			needs(t, command[0])
			old, changed := startReceiver(t, folder, command, oldSecret), startReceiver(t, folder, command, newSecret)
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
	args := strings.Split(strings.ReplaceAll(strings.Join(command, " "), "$PORT", port), " ")
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
