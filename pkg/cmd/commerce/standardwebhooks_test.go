package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/value"
)

// capture takes one HTTP request and returns its bytes as they came.
func capture(t *testing.T) (url string, request <-chan []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	requests := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var raw bytes.Buffer
		r, err := http.ReadRequest(bufio.NewReaderSize(io.TeeReader(conn, &raw), 1))
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			t.Errorf("read the request: %v in %q", err, &raw)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		requests <- raw.Bytes()
	}()
	return "http://" + l.Addr().String() + "/hook", requests
}

// specimen is a request as a receiver may get it.
type specimen struct {
	name    string
	Secret  string `json:"secret"`
	Request []byte `json:"request"`
	good    bool
}

// specimens are the request itself, and all ways to tamper with it.
func specimens(t *testing.T, secret string, request []byte) []specimen {
	t.Helper()
	head, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	with := func(edit func(name, v string) string, body []byte) []byte {
		lines := strings.Split(string(head), "\r\n")
		for i, line := range lines[1:] {
			name, v, _ := strings.Cut(line, ": ")
			lines[i+1] = name + ": " + edit(strings.ToLower(name), v)
		}
		return append([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), body...)
	}
	change := func(header string, to func(string) string) []byte {
		return with(func(name, v string) string {
			if name == header {
				return to(v)
			}
			return v
		}, body)
	}
	flipped := bytes.Clone(body)
	flipped[len(flipped)/2] ^= 1
	return []specimen{
		{"as it came", secret, request, true},
		{"another body", secret, with(func(_, v string) string { return v }, flipped), false},
		{"another id", secret, change("webhook-id", func(string) string { return value.NewID().String() }), false},
		{"another time", secret, change("webhook-timestamp", func(string) string { return fmt.Sprint(time.Now().Unix() - 60) }), false},
		{"another signature", secret, change("webhook-signature", func(v string) string { return v[:10] + "AAAA" + v[14:] }), false},
		{"another secret", testSecret, request, false},
	}
}

func TestTheOfficialLibrariesVerifyWhatIsDeliveredAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	url, requests := capture(t)
	created := s.create(t, "/developers/webhooks/endpoints?applicationId="+s.ApplicationID, fmt.Sprintf(`{"url":%q,"events":["order.created"]}`, url))
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"A-1","currency":"EUR",
		"notes":"Thé \u2028 <☕> 𝄞 & \\","items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]}}`, s.OrganizationID, value.NewID()))
	var request []byte
	select {
	case request = <-requests:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was delivered within 10 s")
	}
	cases := specimens(t, created["secret"].(string), request)
	t.Run("Go", func(t *testing.T) {
		for _, c := range cases {
			head, body, _ := bytes.Cut(c.Request, []byte("\r\n\r\n"))
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(head, "\r\n\r\n"...))))
			if err != nil {
				t.Fatal(err)
			}
			webhook, err := standardwebhooks.NewWebhook(c.Secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := webhook.Verify(body, r.Header); (err == nil) != c.good {
				t.Errorf("%s: got %v, want good %v of\n%s", c.name, err, c.good, c.Request)
			}
		}
	})
	t.Run("JavaScript", func(t *testing.T) {
		for i, verdict := range verifyInNode(t, cases) {
			if c := cases[i]; (verdict == "good") != c.good {
				t.Errorf("%s: got %q, want good %v of\n%s", c.name, verdict, c.good, c.Request)
			}
		}
	})
}

// verifyInNode asks the JavaScript library, which npm installs once.
func verifyInNode(t *testing.T, cases []specimen) []string {
	t.Helper()
	const library = "standardwebhooks@1.1.1"
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node.js is not installed")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(cache, "commerce-integration", library)
	if _, err := os.Stat(filepath.Join(installed, "node_modules")); err != nil {
		install(t, library, installed)
	}
	var in bytes.Buffer
	for _, c := range cases {
		if err := json.MarshalWrite(&in, c); err != nil {
			t.Fatal(err)
		}
		in.WriteByte('\n')
	}
	cmd := exec.CommandContext(t.Context(), node, "testdata/verify.js")
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(installed, "node_modules"))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	verdicts := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(verdicts) != len(cases) {
		t.Fatalf("verify.js: %v, %d verdicts for %d requests: %q", err, len(verdicts), len(cases), out)
	}
	return verdicts
}

// install lets npm install a library beside dir and moves it there in one
// step.
func install(t *testing.T, library, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "install-") //nolint:usetesting // it is renamed, so it must be on dir's file system
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	cmd := exec.CommandContext(t.Context(), "npm", "install", library, "--prefix", work, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm install %s: %v\n%s", library, err, out)
	}
	if err := os.Rename(work, dir); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}
