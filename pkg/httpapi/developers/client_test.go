package developers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/value"
)

func TestRotatingTheClientSecret(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := "/developers/applications/" + app.ID.String()
	rotated := s.want(200, "POST", path+"/rotate-secret", "")
	got := decode[account.Application](t, rotated)
	if len(got.ClientSecret) != 43 || got.ClientSecret == app.ClientSecret || got.UpdatedAt <= app.UpdatedAt || got.ClientID != app.ClientID {
		t.Errorf("rotated: got %s", rotated.body)
	}
	read := s.want(200, "GET", path, "")
	if diff := cmp.Diff(got.Masked(), decode[account.Application](t, read)); diff != "" {
		t.Errorf("read after the rotation (-rotated, masked +read):\n%s", diff)
	}
	if read.header.Get("ETag") != rotated.header.Get("ETag") {
		t.Errorf("ETag: got %q when rotated and %q when read, want the same", rotated.header.Get("ETag"), read.header.Get("ETag"))
	}
}

func TestClientSecretsOverlapForADay(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	rotate := func() string {
		return decode[account.Application](t, s.want(200, "POST", "/developers/applications/"+app.ID.String()+"/rotate-secret", "")).ClientSecret
	}
	first, second := app.ClientSecret, rotate()
	client, err := s.table.ClientByID(t.Context(), app.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	rotatedAt := client.Secrets.PreviousUntil.Add(-24 * time.Hour)
	for _, at := range []struct {
		after time.Duration
		first bool
	}{{0, true}, {24*time.Hour - time.Millisecond, true}, {24 * time.Hour, false}} {
		if got := client.Secrets.Accept(first, rotatedAt.Add(at.after)); got != at.first {
			t.Errorf("the old secret after %s: accepted %t, want %t", at.after, got, at.first)
		}
		if !client.Secrets.Accept(second, rotatedAt.Add(at.after)) {
			t.Errorf("the new secret after %s is refused", at.after)
		}
	}
	third := rotate()
	if client, err = s.table.ClientByID(t.Context(), app.ClientID); err != nil {
		t.Fatal(err)
	}
	now := value.TimeOf(s.now())
	if client.Secrets.Accept(first, now) || !client.Secrets.Accept(second, now) || !client.Secrets.Accept(third, now) {
		t.Error("after a second rotation: want the last two secrets and no older one")
	}
	if client.Secrets.Accept("", now) {
		t.Error("an empty secret is accepted")
	}
}

func TestTokenScopes(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := "/developers/applications/" + app.ID.String() + "/token-scopes"
	const reading = `{"scopes":["categories:read","customers:read","invoices:read","orders:read","products:read"]}`
	if got := s.want(200, "GET", path, ""); got.body != reading {
		t.Errorf("of a new application: got %s, want %s", got.body, reading)
	}
	for body, want := range map[string]string{
		`{"scopes":["webhooks:write","orders:read","orders:read"]}`: `{"scopes":["orders:read","webhooks:write"]}`,
		`{"scopes":["webhooks:read"]}`:                              `{"scopes":["webhooks:read"]}`,
	} {
		set := s.want(200, "PUT", path, body)
		if read := s.want(200, "GET", path, ""); set.body != want || read.body != want {
			t.Errorf("set to %s: got %s and read %s, want %s", body, set.body, read.body, want)
		}
	}
	if shown := s.want(200, "GET", strings.TrimSuffix(path, "/token-scopes"), ""); strings.Contains(shown.body, "webhooks:read") {
		t.Errorf("the application's shape has grown: %s", shown.body)
	}
}

func TestAClientEndsWithItsApplication(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	s.want(204, "DELETE", "/developers/applications/"+app.ID.String(), "")
	if c, err := s.table.ClientByID(t.Context(), app.ClientID); c != nil || err != nil {
		t.Errorf("the client of a deleted application: got %+v, %v, want none", c, err)
	}
}

func TestChangesOfAClientTakeAPrecondition(t *testing.T) {
	s := newService(t)
	path := apps + "/" + s.create("Shop").ID.String()
	for _, tc := range []struct{ method, read, change, body string }{
		{"PUT", path + "/token-scopes", path + "/token-scopes", `{"scopes":["orders:read"]}`},
		{"POST", path, path + "/rotate-secret", ""},
	} {
		stale := s.want(200, "GET", tc.read, "").header.Get("ETag")
		changed := s.want(200, tc.method, tc.change, tc.body, "If-Match", stale)
		now := s.want(200, "GET", tc.read, "")
		if tag := now.header.Get("ETag"); tag == stale || changed.header.Get("ETag") != tag {
			t.Errorf("%s: ETag %q before, %q of the answer, %q after; want a new one in both", tc.change, stale, changed.header.Get("ETag"), tag)
		}
		s.want(412, tc.method, tc.change, tc.body, "If-Match", stale)
		if again := s.want(200, "GET", tc.read, ""); again.body != now.body {
			t.Errorf("%s: a refused change made %s of %s", tc.change, again.body, now.body)
		}
		s.want(200, tc.method, tc.change, tc.body, "If-Match", "*")
	}
}
