package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// front is a service behind a proxy, which may answer a posted request in the
// service's stead.
type front struct {
	*httptest.Server
	answer func(w http.ResponseWriter, post int) (answered bool)

	mu   sync.Mutex
	keys map[string][]string // by body, of all requests
	at   []time.Time         // of the posted requests
}

func (s *service) behind(t *testing.T, answer func(w http.ResponseWriter, post int) bool) *front {
	t.Helper()
	base, err := url.Parse(s.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{answer: answer, keys: map[string][]string{}}
	proxy := httputil.NewSingleHostReverseProxy(base)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			f.mu.Lock()
			f.at = append(f.at, time.Now())
			post := len(f.at)
			f.keys[string(body)] = append(f.keys[string(body)], r.Header.Get("Idempotency-Key"))
			f.mu.Unlock()
			if f.answer(w, post) {
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// sameKeys reports whether each body was always posted under one key, and no two
// under the same.
func (f *front) sameKeys() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for _, keys := range f.keys {
		if unique := slices.Compact(slices.Clone(keys)); len(unique) != 1 || keys[0] == "" || seen[keys[0]] {
			return false
		}
		seen[keys[0]] = true
	}
	return len(seen) > 0
}

// versioned writes n products of about 2 KiB with version 5, and returns the file
// and the ids.
func versioned(t *testing.T, n int) (path string, ids []value.ID) {
	t.Helper()
	var text strings.Builder
	for i := range n {
		ids = append(ids, value.NewID())
		fmt.Fprintf(&text, `{"kind":"product","op":"put","version":5,"record":{"id":%q,"name":"Mug %d","description":%q}}`+"\n", ids[i], i, strings.Repeat("a mug of stoneware ", 100))
	}
	path = filepath.Join(t.TempDir(), "products.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, ids
}

func TestImportSendsOverHTTPAndListsWhatTheServiceRefused(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	path, ids := versioned(t, 250)
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","version":5,"record":{"id":%q,"name":"another"}}`, s.OrganizationID, ids[122]))
	await(t, "the other product", func() bool { return s.total(t, "/api/products") == 1 })
	f := s.behind(t, func(http.ResponseWriter, int) bool { return false })
	refused := filepath.Join(t.TempDir(), "refused.jsonl")
	args := []string{"import", "--data", t.TempDir(), "--url", f.URL, "--token", s.JWT, "--refused", refused, path}
	for range 2 { // the second time nothing is kept of the first
		stdout, stderr, err := runCommand(t.Context(), args...)
		want := "accepted  249\nrejected  1\n  1 version_conflict\n  products.jsonl:123: version_conflict: "
		if !strings.HasPrefix(stdout, want) || exitCode(err) != 1 || !strings.Contains(stderr, "1 of 250 records were rejected") {
			t.Fatalf("import printed\n%s%s%v; want\n%s", stdout, stderr, err, want)
		}
		if want := "all is stored except what was rejected, and the lists show the last of it\n"; !strings.Contains(stderr, want) {
			t.Errorf("import said %q, want %q", stderr, want)
		}
		await(t, "all in the list", func() bool { return s.total(t, "/api/products") == 250 })
	}
	rows, err := os.ReadFile(refused)
	if want := `{"kind":"product","op":"put","version":5,"record":{"id":"` + ids[122].String(); err != nil || !strings.HasPrefix(string(rows), want) || strings.Count(string(rows), "\n") != 1 {
		t.Errorf("the refused rows: %v\n%s", err, rows)
	}
	for body, keys := range f.keys {
		if len(keys) != 2 || keys[0] == keys[1] || len(body) > maxPosted {
			t.Errorf("%d bytes came under the keys %q; want one of each import", len(body), keys)
		}
	}
	if len(f.keys) < 3 {
		t.Errorf("250 records in %d requests, want 100 in each at most", len(f.keys))
	}
	corrected := strings.Replace(string(rows), `"version":5`, `"version":6`, 1)
	if err := os.WriteFile(refused, []byte(corrected), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, err := runCommand(t.Context(), "import", "--data", t.TempDir(), "--url", f.URL, "--token", s.JWT, refused); err != nil || !strings.HasPrefix(stdout, "accepted  1\nrejected  0\n") {
		t.Errorf("import of the corrected row printed\n%s%s%v", stdout, stderr, err)
	}
}

func TestARequestWithoutAnAnswerIsPostedAgainUnderItsKey(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	path, _ := versioned(t, 3)
	f := s.behind(t, func(w http.ResponseWriter, post int) bool {
		switch post {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3:
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	stdout, stderr, err := runCommand(t.Context(), "import", "--data", t.TempDir(), "--url", f.URL, "--token", s.JWT, path)
	if err != nil || stdout != "accepted  3\nrejected  0\n" {
		t.Fatalf("import: %v\n%s%s", err, stdout, stderr)
	}
	if len(f.at) < 4 || !f.sameKeys() {
		t.Errorf("%d requests under the keys %q; want at least 4 under one", len(f.at), f.keys)
	}
	if waited := f.at[1].Sub(f.at[0]); waited < time.Second {
		t.Errorf("the second request came after %s, want the second of Retry-After", waited)
	}
}

func TestAnImportOverHTTPGoesOnWithANewToken(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	path, _ := versioned(t, 1500)
	data := t.TempDir()
	f := s.behind(t, func(w http.ResponseWriter, post int) bool {
		if post == 9 { // of the second batch or later
			w.WriteHeader(http.StatusUnauthorized)
		}
		return post == 9
	})
	args := []string{"import", "--data", data, "--url", f.URL, "--token", s.JWT, path}
	stdout, stderr, err := runCommand(t.Context(), args...)
	if err == nil || !strings.Contains(stderr, "give the same command again to go on after row ") {
		t.Fatalf("with a token that ended: %v\n%s%s", err, stdout, stderr)
	}
	stdout, stderr, err = runCommand(t.Context(), args...)
	if err != nil || !strings.Contains(stdout, "(sent by the interrupted import)") || !f.sameKeys() {
		t.Errorf("again: %v, each request under one key: %t\n%s%s", err, f.sameKeys(), stdout, stderr)
	}
	if n := s.total(t, "/api/products"); n != 1500 {
		t.Errorf("the list has %d products, want 1500", n)
	}
}

func TestImportOverHTTPSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	path, _ := versioned(t, 1)
	reader := strings.TrimSpace(s.commerce(t, "token", "--organization", s.OrganizationID, "--roles", "VIEWER"))
	watched.Made(reader)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--token", s.JWT}, exitTrouble, "--token goes with --url"},
		{[]string{"--token", s.JWT, "--queue-url", s.RecordsQueueURL, "--organization", s.OrganizationID}, exitTrouble, "none of the others can be"},
		{[]string{"--url", s.BaseURL}, exitTrouble, "--token or $COMMERCE_TOKEN must be a token with the scope records:write"},
		{[]string{"--token", "x", "--url", s.BaseURL}, 1, "the service answered 401"},
		{[]string{"--token", reader, "--url", s.BaseURL}, 1, "the service answered 403"},
		{[]string{"--token", s.JWT, "--url", strings.Replace(s.BaseURL, "http:", "https:", 1)}, 1, "server gave HTTP response to HTTPS client"},
		{[]string{"--token", s.JWT, "--url", "http://127.0.0.1:1"}, 1, "connection refused"},
	} {
		stdout, stderr, err := runCommand(t.Context(), append([]string{"import", "--data", t.TempDir(), path}, c.args...)...)
		if exitCode(err) != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("import %q: code %d, %s%s; want %d, %q", c.args, exitCode(err), stdout, stderr, c.code, c.want)
		}
	}
	if n := s.total(t, "/api/products"); n != 0 {
		t.Errorf("%d products are stored, want none", n)
	}
}
