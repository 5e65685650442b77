package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/base/value"
)

// wiretap is a receiver that keeps its requests as they came.
type wiretap struct {
	url      string
	requests chan request
}

// newWiretap answers its n-th request, counted from 1, with the status.
func newWiretap(t *testing.T, status func(n int) int) *wiretap {
	t.Helper()
	w, n := &wiretap{requests: make(chan request, 16)}, 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got := request{method: r.Method, Header: map[string]string{}, Body: string(body)}
		for name, values := range r.Header {
			got.Header[strings.ToLower(name)] = values[0]
			if len(values) > 1 || err != nil {
				t.Errorf("header %s: %q; %v", name, values, err)
			}
		}
		n++
		rw.WriteHeader(status(n))
		w.requests <- got
	}))
	t.Cleanup(server.Close)
	w.url = server.URL + "/hook"
	return w
}

// next is the next request.
func (w *wiretap) next(t *testing.T) request {
	t.Helper()
	select {
	case got := <-w.requests:
		return got
	case <-time.After(patience):
		t.Fatal("nothing was delivered")
		return request{}
	}
}

// request is a webhook, taken apart so that it can be tampered with.
type request struct {
	method string
	Header map[string]string `json:"header"` // by lower-case name
	Body   string            `json:"body"`
}

func (r request) with(header, v string) request {
	r.Header = maps.Clone(r.Header)
	r.Header[header] = v
	return r
}

func (r request) without(header string) request {
	r.Header = maps.Clone(r.Header)
	delete(r.Header, header)
	return r
}

func (r request) withBody(body string) request {
	r.Body = body
	return r
}

// signatures are the request's, each with its version.
func (r request) signatures() []string { return strings.Fields(r.Header["webhook-signature"]) }

// specimen is a request as a receiver may get it, and whether the secret
// must verify it.
type specimen struct {
	name   string
	Secret string `json:"secret"`
	request
	good bool
}

// tampered are the ways to tamper with a request; none may verify by a secret
// that verifies the request itself. Times are the request's own, changed: one
// reckoned from now could be the genuine one of a request that waited.
func tampered(r request, secret string) []specimen {
	sent, _ := strconv.ParseInt(r.Header["webhook-timestamp"], 10, 64) // genuine
	swapped := make([]string, 0, 5)
	for _, s := range r.signatures() {
		swapped = append(swapped, s[:10]+strings.Map(swapCase, s[10:14])+s[14:])
	}
	cases := []struct {
		name string
		r    request
	}{
		{"another body", r.withBody(strings.Replace(r.Body, "A-1", "A-2", 1))},
		{"a longer body", r.withBody(r.Body + " ")},
		{"a shorter body", r.withBody(r.Body[:len(r.Body)-1])},
		{"no body", r.withBody("")},
		{"another id", r.with("webhook-id", value.NewID().String())},
		{"no id", r.without("webhook-id")},
		{"an earlier time", r.with("webhook-timestamp", fmt.Sprint(sent-60))},
		{"a later time", r.with("webhook-timestamp", fmt.Sprint(sent+60))},
		{"a time long ago", r.with("webhook-timestamp", fmt.Sprint(sent-600))},
		{"a time far ahead", r.with("webhook-timestamp", fmt.Sprint(sent+600))},
		{"no time", r.without("webhook-timestamp")},
		{"other signatures", r.with("webhook-signature", strings.Join(swapped, " "))},
		{"signatures of another version", r.with("webhook-signature", strings.ReplaceAll(r.Header["webhook-signature"], "v1,", "v2,"))},
		{"no signature", r.without("webhook-signature")},
	}
	specimens := make([]specimen, len(cases))
	for i, c := range cases {
		specimens[i] = specimen{name: c.name, Secret: secret, request: c.r}
	}
	return specimens
}

// swapCase makes another base64 character of one.
func swapCase(r rune) rune {
	switch {
	case unicode.IsUpper(r):
		return unicode.ToLower(r)
	case unicode.IsLower(r):
		return unicode.ToUpper(r)
	}
	return 'A'
}

// spicedOrder is a message of a new order with characters that are easily
// changed on their way.
func (s *service) spicedOrder() string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"A-1","currency":"EUR",
		"notes":"Thé \u2028 <☕> 𝄞 & \\","items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]}}`, s.OrganizationID, value.NewID())
}

// good and bad begin the verdicts of a library. Anything else is a fault of
// ours, or of the library's.
const (
	good = "good"
	bad  = "bad: "
)

// judge has the official library of each language verify the specimens.
func judge(t *testing.T, cases []specimen) {
	t.Helper()
	for _, library := range []struct {
		language string
		verify   func(*testing.T, []specimen) []string
	}{{"Go", verifyInGo}, {"JavaScript", verifyInNode}, {"Python", verifyInPython}} {
		t.Run(library.language, func(t *testing.T) {
			verdicts := library.verify(t, cases)
			if len(verdicts) != len(cases) {
				t.Fatalf("%d verdicts on %d requests: %q", len(verdicts), len(cases), verdicts)
			}
			for i, c := range cases {
				if verdict := verdicts[i]; c.good && verdict != good || !c.good && !strings.HasPrefix(verdict, bad) {
					t.Errorf("%s: got %q, want good %v of\n%v", c.name, verdict, c.good, c.request)
				}
			}
		})
	}
}

func verifyInGo(t *testing.T, cases []specimen) []string {
	t.Helper()
	verdicts := make([]string, len(cases))
	for i, c := range cases {
		header := http.Header{}
		for name, v := range c.Header {
			header.Set(name, v)
		}
		webhook, err := standardwebhooks.NewWebhook(c.Secret)
		if err != nil {
			t.Fatal(err)
		}
		verdicts[i] = good
		if err := webhook.Verify([]byte(c.Body), header); err != nil {
			verdicts[i] = bad + err.Error()
		}
	}
	return verdicts
}

func verifyInNode(t *testing.T, cases []specimen) []string {
	t.Helper()
	const library = "standardwebhooks@1.1.1"
	installed := install(t, "npm-"+library, func(dir string) error {
		return command(t, "npm", "install", library, "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	})
	return verifyIn(t, cases, "NODE_PATH="+filepath.Join(installed, "node_modules"), "node", "testdata/verify.js")
}

func verifyInPython(t *testing.T, cases []specimen) []string {
	t.Helper()
	const library = "standardwebhooks==1.1.0"
	installed := install(t, "pypi-"+library, func(dir string) error {
		// pip of an environment: the system's may be absent or refuse.
		environment := filepath.Join(t.TempDir(), "environment")
		if err := command(t, "python3", "-m", "venv", environment); err != nil {
			return err
		}
		return command(t, filepath.Join(environment, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--only-binary", ":all:", "--target", dir, library)
	})
	return verifyIn(t, cases, "PYTHONPATH="+installed, "python3", "testdata/verify.py")
}

// verifyIn gives the specimens to a program, a line each, and returns its
// lines.
func verifyIn(t *testing.T, cases []specimen, environment, program string, args ...string) []string {
	t.Helper()
	var in bytes.Buffer
	for _, c := range cases {
		if err := json.MarshalWrite(&in, c); err != nil {
			t.Fatal(err)
		}
		in.WriteByte('\n')
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), environment)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v, after %q", program, args, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// install returns the folder of a library in the user's cache. What is not
// there yet is made beside it and moved there in one step, so that concurrent
// tests and those that are interrupted leave nothing half done.
func install(t *testing.T, name string, into func(dir string) error) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "commerce-integration", name)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "install-") //nolint:usetesting // it is renamed, so it must be on dir's file system
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	if err := into(work); err != nil {
		t.Fatalf("install %s: %v", name, err)
	}
	if err := os.Rename(work, dir); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return dir
}

func command(t *testing.T, program string, args ...string) error {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
