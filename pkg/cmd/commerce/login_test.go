//go:build unix

package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// publicClient makes the organization's client for commerce login.
func (s *service) publicClient(t *testing.T) (clientID string) {
	t.Helper()
	app := s.create(t, "/developers/applications", `{"name":"commerce","redirectUri":"http://127.0.0.1/"}`)
	s.ApplicationID = app["id"].(string)
	resp, body := s.do(t, "PUT", "/developers/applications/"+s.ApplicationID+"/client", `{"type":"PUBLIC"}`, map[string]string{"Authorization": "Bearer " + s.JWT})
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s", resp.StatusCode, body)
	}
	return app["clientId"].(string)
}

// decide makes the request that the browser was opened with as the portal's page
// does, and returns where it sends the browser.
func (s *service) decide(t *testing.T, browser string, allow ...string) *url.URL {
	t.Helper()
	var page *url.URL
	await(t, "the browser", func() bool {
		text, _ := os.ReadFile(browser)
		page, _ = url.Parse(strings.TrimSpace(string(text)))
		return strings.HasSuffix(string(text), "\n")
	})
	if err := os.Remove(browser); err != nil || page.Path != "/portal/authorize" {
		t.Fatalf("the page %s, %v", page, err)
	}
	body, err := json.Marshal(map[string]any{"request": page.RawQuery, "allow": append([]string{}, allow...)})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := s.user(t, "POST", "/developers/grants", string(body))
	var decided struct{ RedirectTo string }
	if err := json.Unmarshal(answer, &decided, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(decided.RedirectTo)
	if err != nil || back.Host == "" {
		t.Fatalf("got %s, %v", answer, err)
	}
	return back
}

// visit opens a page as the browser does.
func visit(t *testing.T, page *url.URL) int {
	t.Helper()
	resp, err := http.Get(page.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func (s *service) grants(t *testing.T) int {
	t.Helper()
	var p page
	s.history(t, "/developers/applications/"+s.ApplicationID+"/grants", &p)
	return len(p.Data)
}

// It has the environment to itself: its browser writes what it is opened with to a file.
func TestAUserSignsInExportsAndSignsOut(t *testing.T) {
	s := newOrganization(t)
	client := s.publicClient(t)
	s.send(t, s.order(value.NewID(), "PENDING"))
	await(t, "the record", func() bool { return s.total(t, "/api/orders") == 1 })
	programs, settings := t.TempDir(), t.TempDir()
	browser := filepath.Join(programs, "opened")
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho \"$1\" >"+browser+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs)
	t.Setenv("HOME", settings)
	t.Setenv("XDG_CONFIG_HOME", settings)
	export := func() (string, error) {
		out, errOut, err := runCommand(t.Context(), "export", "--url", s.BaseURL+"/", "--to", "-")
		return out + errOut, err
	}
	if text, err := export(); exitCode(err) != exitTrouble || !strings.Contains(text, "commerce login") {
		t.Fatalf("before the sign-in: %v %s", err, text)
	}

	ended := make(chan error)
	login := func() {
		_, _, err := runCommand(t.Context(), "login", s.BaseURL+"/", "--client-id", client)
		ended <- err
	}
	go login()
	if status := visit(t, s.decide(t, browser)); status != http.StatusOK {
		t.Errorf("the browser got %d", status)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("declined: %v", err)
	}

	go login()
	mixed := s.decide(t, browser)
	mixed.RawQuery = strings.Replace(mixed.RawQuery, "iss=", "iss=x", 1)
	visit(t, mixed)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "is one of") {
		t.Errorf("another issuer: %v", err)
	}

	for range 2 { // the second sign-in takes the place of the first
		go login()
		back := s.decide(t, browser, "orders:read")
		forged := *back
		forged.RawQuery = strings.Replace(back.RawQuery, "state=", "state=x", 1)
		if status := visit(t, &forged); status != http.StatusNotFound {
			t.Errorf("another state: got %d", status)
		}
		visit(t, back)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	l, err := loginAt(s.BaseURL)
	if err != nil || l.Tokens == nil || s.grants(t) != 1 {
		t.Fatalf("%+v, %v, %d grants, want one", l, err, s.grants(t))
	}
	watched.Made(l.Tokens.RefreshToken, l.Tokens.AccessToken)
	if info, err := os.Stat(string(l.file)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	first := l.Tokens.RefreshToken
	if text, err := export(); err != nil || !strings.Contains(text, `"kind":"order"`) {
		t.Errorf("%v %s", err, text)
	}
	l.Tokens.Expiry = time.Now()
	if err := l.file.Save(l); err != nil {
		t.Fatal(err)
	}
	if text, err := export(); err != nil || !strings.Contains(text, `"kind":"order"`) {
		t.Errorf("after the access token: %v %s", err, text)
	}
	if l, err = loginAt(s.BaseURL); err != nil || l.Tokens.RefreshToken == first {
		t.Errorf("the new refresh token was not kept: %v", err)
	}

	if out, errOut, err := runCommand(t.Context(), "logout", s.BaseURL); err != nil || s.grants(t) != 0 {
		t.Errorf("logout: %v %s%s, %d grants", err, out, errOut, s.grants(t))
	}
	if text, err := export(); exitCode(err) != exitTrouble {
		t.Errorf("after the logout: %v %s", err, text)
	}
	l.Tokens.Expiry = time.Now()
	if err := l.file.Save(l); err != nil {
		t.Fatal(err)
	}
	if text, err := export(); err == nil || !strings.Contains(text, "invalid_grant") {
		t.Errorf("by a grant that was revoked elsewhere: %v %s", err, text)
	}
	if _, _, err := runCommand(t.Context(), "logout", s.BaseURL); err != nil {
		t.Errorf("logout when it was revoked elsewhere: %v", err)
	}
}
