package developers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
)

func TestTheLastTwoClientSecretsWork(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := apps + "/" + app.ID.String()
	rotate := func() string {
		rotated := decode[account.Application](t, s.want(200, "POST", path+"/rotate-secret", ""))
		read := decode[account.Application](t, s.want(200, "GET", path, ""))
		if diff := cmp.Diff(rotated.Masked(), read); diff != "" || len(rotated.ClientSecret) != 43 || rotated.UpdatedAt <= app.UpdatedAt {
			t.Errorf("read after the rotation (-rotated, masked +read):\n%s", diff)
		}
		return rotated.ClientSecret
	}
	first, second := app.ClientSecret, rotate()
	third := rotate()
	client, err := s.Table.ClientByID(t.Context(), app.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	now := s.Now()
	if client.Secrets.Accept(first, now) || !client.Secrets.Accept(second, now) || !client.Secrets.Accept(third, now) {
		t.Error("after a second rotation: want the last two secrets and no older one")
	}
	if client.Secrets.Accept("", now) {
		t.Error("an empty secret is accepted")
	}
	s.want(204, "DELETE", path, "")
	if c, err := s.Table.ClientByID(t.Context(), app.ClientID); c != nil || err != nil {
		t.Errorf("the client of a deleted application: got %+v, %v, want none", c, err)
	}
}

func TestTokenScopes(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := "/developers/applications/" + app.ID.String() + "/token-scopes"
	reading := `{"scopes":["` + strings.Join(account.ReadScopes(), `","`) + `"]}`
	if got := s.want(200, "GET", path, ""); got.Body != reading {
		t.Errorf("of a new application: got %s, want %s", got.Body, reading)
	}
	for body, want := range map[string]string{
		`{"scopes":["webhooks:write","orders:read","orders:read"]}`: `{"scopes":["orders:read","webhooks:write"]}`,
		`{"scopes":["webhooks:read"]}`:                              `{"scopes":["webhooks:read"]}`,
	} {
		set := s.want(200, "PUT", path, body)
		if read := s.want(200, "GET", path, ""); set.Body != want || read.Body != want {
			t.Errorf("set to %s: got %s and read %s, want %s", body, set.Body, read.Body, want)
		}
	}
	if shown := s.want(200, "GET", strings.TrimSuffix(path, "/token-scopes"), ""); strings.Contains(shown.Body, "webhooks:read") {
		t.Errorf("the application's shape has grown: %s", shown.Body)
	}
}

// narrowed is the caller with a token whose scope claim names only the scopes.
func (s *service) narrowed(as auth.Principal, scopes string) {
	s.as = as
	s.as.Scopes = auth.ParseScopes(scopes)
}

// TestNobodyGivesMoreThanHeHas is about a token that its scope claim narrows, and
// about a DEVELOPER: what they make or rotate would reach what they cannot.
func TestNobodyGivesMoreThanHeHas(t *testing.T) {
	s := newService(t)
	owner := s.as
	const readOrders = "developers:write orders:read"
	developer, reading := auth.DeveloperRole.Scopes().String(), auth.ReadScopes().String()
	for _, tc := range []struct {
		name, scopes string // of the caller
		tokens       string // scopes of the application's tokens before; "": all read scopes
		method, path string
		body         string
		lacked       string // in the answer's details; "": it succeeds
		given        string // the scopes of the key, or of the application's tokens after it
	}{
		{"a key by default", readOrders, "", "POST", "/api-keys", `{"name":"x"}`, "", "orders:read"},
		{"a key of more", readOrders, "", "POST", "/api-keys", `{"name":"x","scopes":["orders:read","products:read","customers:read"]}`, "customers:read products:read", ""},
		{"a key of nothing", "developers:write", "", "POST", "/api-keys", `{"name":"x"}`, reading, ""},
		{"a named scope that the caller lacks", "developers:write", "", "POST", "/api-keys", `{"name":"x","scopes":["orders:read"]}`, "orders:read", ""},
		{"an application", readOrders, "", "POST", "", shop, "", "orders:read"},
		{"an application of nothing", "developers:write webhooks:write", "", "POST", "", shop, reading, ""},
		{"a rotation of the caller's scopes", readOrders, "orders:read", "POST", "/rotate-secret", "", "", "orders:read"},
		{"a rotation of more", readOrders, "orders:read products:read", "POST", "/rotate-secret", "", "products:read", ""},
		{"a developer's rotation", developer, "", "POST", "/rotate-secret", "", "", reading},
		{"a developer's rotation of what posts records", developer, "records:write webhooks:read", "POST", "/rotate-secret", "", "records:write", ""},
		{"a grant of the caller's scopes", readOrders + " developers:admin", "products:read", "PUT", "/token-scopes", `{"scopes":["orders:read","products:read"]}`, "", "orders:read products:read"},
		{"a grant of more", readOrders + " developers:admin", "products:read", "PUT", "/token-scopes", `{"scopes":["orders:read","records:write"]}`, "records:write", ""},
		{"a grant that takes away", "developers:write developers:admin", "products:read records:write", "PUT", "/token-scopes", `{"scopes":["records:write"]}`, "", "records:write"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.t, s.as = t, owner
			app := s.create("Shop").ID.String()
			path := apps + "/" + app
			if tc.tokens != "" {
				s.want(200, "PUT", path+"/token-scopes", `{"scopes":["`+strings.ReplaceAll(tc.tokens, " ", `","`)+`"]}`)
			}
			s.narrowed(owner, tc.scopes)
			if tc.path == "" {
				path = apps
			}
			got := s.do(tc.method, path+tc.path, tc.body)
			if tc.lacked != "" {
				var lacked []string
				for _, d := range decode[api.Problem](t, got).Details {
					lacked = append(lacked, d.Field)
				}
				if got.Status != 403 || strings.Join(lacked, " ") != tc.lacked || !strings.Contains(got.Body, `"code":"insufficient_scope"`) {
					t.Errorf("got %d %s, want 403 for %s", got.Status, got.Body, tc.lacked)
				}
				return
			}
			s.as = owner
			read := got
			switch {
			case got.Status >= 300:
				t.Fatalf("got %d %s, want success", got.Status, got.Body)
			case tc.path == "":
				read = s.want(200, "GET", apps+"/"+decode[account.Application](t, got).ID.String()+"/token-scopes", "")
			case tc.path != "/api-keys":
				read = s.want(200, "GET", path+"/token-scopes", "")
			}
			if want := `"scopes":["` + strings.ReplaceAll(tc.given, " ", `","`) + `"]`; !strings.Contains(read.Body, want) {
				t.Errorf("got %s, want %s in it", read.Body, want)
			}
		})
	}
}

// TestANarrowedTokenGetsNoKeptSecret is about a repetition, whose answer was kept
// for a token of the same user that may do more.
func TestANarrowedTokenGetsNoKeptSecret(t *testing.T) {
	s := newService(t)
	owner, path := s.as, apps+"/"+s.create("Shop").ID.String()
	for _, path := range []string{apps, path + "/api-keys", path + "/rotate-secret"} {
		body := shop
		if strings.HasSuffix(path, "/rotate-secret") {
			body = ""
		}
		s.as = owner
		first := s.want(s.do("POST", path, body, header, path).Status, "POST", path, body, header, path)
		s.narrowed(owner, "developers:write")
		s.want(422, "POST", path, body, header, path)
		s.as = owner
		s.want(first.Status, "POST", path, body, header, path)
	}
}

func TestChangesOfAClientTakeAPrecondition(t *testing.T) {
	s := newService(t)
	path := apps + "/" + s.create("Shop").ID.String()
	for _, tc := range []struct{ method, read, change, body string }{
		{"PUT", path + "/token-scopes", path + "/token-scopes", `{"scopes":["orders:read"]}`},
		{"POST", path, path + "/rotate-secret", ""},
	} {
		stale := s.want(200, "GET", tc.read, "").Header.Get("ETag")
		changed := s.want(200, tc.method, tc.change, tc.body, "If-Match", stale)
		now := s.want(200, "GET", tc.read, "")
		if tag := now.Header.Get("ETag"); tag == stale || changed.Header.Get("ETag") != tag {
			t.Errorf("%s: ETag %q before, %q of the answer, %q after; want a new one in both", tc.change, stale, changed.Header.Get("ETag"), tag)
		}
		s.want(412, tc.method, tc.change, tc.body, "If-Match", stale)
		if again := s.want(200, "GET", tc.read, ""); again.Body != now.Body {
			t.Errorf("%s: a refused change made %s of %s", tc.change, again.Body, now.Body)
		}
		s.want(200, tc.method, tc.change, tc.body, "If-Match", "*")
	}
}
