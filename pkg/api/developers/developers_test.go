package developers_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

const base = "https://api.example.com/prod"

// service is the area on a real table, as one principal at a time sees it.
type service struct {
	*servicetest.Service
	t      *testing.T
	keeper *idempotency.Keeper
	server *api.Server
	as     auth.Principal
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t), t: t, as: person(value.NewID(), auth.Owner)}
	s.Set(time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC))
	s.keeper = idempotency.New(s.Table, s.Box, s.Time)
	s.serve(s.Table)
	return s
}

// serve answers from the store.
func (s *service) serve(store developers.Store) {
	s.server = api.NewServer(developers.Operations(store, s.Time), api.Config{
		Caller: func(*http.Request) api.Caller {
			return api.Caller{Principal: s.as, RequestID: "r", BaseURL: base}
		},
		Limiter: servicetest.Unlimited{}, Idempotency: s.keeper, Clock: s.Time, Logger: s.Leaks.Logger(),
	})
}

func person(org value.ID, role auth.Role) auth.Principal {
	return auth.Principal{Kind: auth.KindUser, OrganizationID: org, UserID: value.NewID(), Scopes: role.Scopes(), RateLimit: 600}
}

type reply = servicetest.Answer

// do makes a request, each at a time of its own.
func (s *service) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	s.Pass(time.Millisecond)
	return s.AskJSON(s.server, method, path, body, headers...)
}

// want fails unless the answer has the status, and returns it.
func (s *service) want(status int, method, path, body string, headers ...string) reply {
	s.t.Helper()
	got := s.do(method, path, body, headers...)
	if got.Status != status {
		s.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, got.Status, got.Body, status)
	}
	return got
}

func decode[T any](t *testing.T, r reply) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.Body), &v, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", r.Body, err)
	}
	return v
}

func (s *service) create(name string) account.Application {
	s.t.Helper()
	return decode[account.Application](s.t, s.want(201, "POST", "/developers/applications", `{"name":"`+name+`"}`))
}

func (s *service) createKey(app value.ID, body string) account.CreatedKey {
	s.t.Helper()
	return decode[account.CreatedKey](s.t, s.want(201, "POST", "/developers/applications/"+app.String()+"/api-keys", body))
}

func TestTheLifeOfAnApplication(t *testing.T) {
	s := newService(t)
	created := s.want(201, "POST", "/developers/applications", `{"name":" Shop ","website":"https://example.com"}`)
	app := decode[account.Application](t, created)
	path := "/developers/applications/" + app.ID.String()
	if got, want := created.Header.Get("Location"), base+path; got != want {
		t.Errorf("Location: got %s, want %s", got, want)
	}
	if app.UserID != s.as.UserID || app.OrganizationID != s.as.OrganizationID || app.Name != "Shop" || len(app.ClientSecret) != 43 {
		t.Errorf("created: got %+v", app)
	}

	read := s.want(200, "GET", path, "")
	if diff := cmp.Diff(app.Masked(), decode[account.Application](t, read)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if created.Header.Get("ETag") != read.Header.Get("ETag") || read.Header.Get("ETag") == "" {
		t.Errorf("ETag: got %q when created and %q when read, want the same", created.Header.Get("ETag"), read.Header.Get("ETag"))
	}
	s.want(304, "GET", path, "", "If-None-Match", created.Header.Get("ETag"))

	unchanged := s.want(200, "PATCH", path, `{}`)
	if unchanged.Body != read.Body {
		t.Errorf("an empty change: got %s, want %s", unchanged.Body, read.Body)
	}
	changed := s.want(200, "PATCH", path, `{"description":"d","website":null}`, "If-Match", `"other", `+read.Header.Get("ETag"))
	got := decode[account.Application](t, changed)
	if got.Description == nil || *got.Description != "d" || got.Website != nil || got.UpdatedAt <= app.UpdatedAt || got.CreatedAt != app.CreatedAt {
		t.Errorf("changed: got %s", changed.Body)
	}
	if again := s.want(200, "GET", path, ""); again.Body != changed.Body || again.Header.Get("ETag") != changed.Header.Get("ETag") {
		t.Errorf("read after the change: got %s %s, want %s %s", again.Header.Get("ETag"), again.Body, changed.Header.Get("ETag"), changed.Body)
	}

	stale := read.Header.Get("ETag")
	s.want(412, "PATCH", path, `{"name":"x"}`, "If-Match", stale)
	s.want(412, "PATCH", path, `{}`, "If-Match", "W/"+changed.Header.Get("ETag"))
	s.want(412, "DELETE", path, "", "If-Match", stale)
	s.want(412, "POST", path+"/suspend", "", "If-Match", stale)
	s.want(412, "POST", path+"/activate", "", "If-Match", stale)
	s.want(200, "PATCH", path, `{}`, "If-Match", "*")
	if gone := s.want(204, "DELETE", path, "", "If-Match", changed.Header.Get("ETag")); gone.Body != "" {
		t.Errorf("deleted: got a body %q", gone.Body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		s.want(404, method, path, "")
	}
	s.want(404, "PATCH", path, `{}`)
}

func TestTheLifeOfAKey(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := "/developers/applications/" + app.ID.String() + "/api-keys"
	created := s.want(201, "POST", path, `{"name":"till","scopes":["orders:read"]}`)
	key := decode[account.CreatedKey](t, created)
	if got, want := created.Header.Get("Location"), base+path+"/"+key.ID.String(); got != want {
		t.Errorf("Location: got %s, want %s", got, want)
	}
	if _, err := account.ParseKeyText(key.Key); err != nil || key.CreatedBy != s.as.UserID || key.ApplicationID != app.ID {
		t.Errorf("created: got %s, %v", created.Body, err)
	}
	list := s.want(200, "GET", path, "")
	page := decode[api.Page[account.APIKey]](t, list)
	if diff := cmp.Diff([]account.APIKey{key.APIKey}, page.Data); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	revoke := path + "/" + key.ID.String() + "/revoke"
	first := s.want(200, "POST", revoke, "")
	if got := decode[account.APIKey](t, first); got.Status != account.KeyRevoked || got.RevokedAt == nil {
		t.Errorf("revoked: got %s", first.Body)
	}
	if second := s.want(200, "POST", revoke, ""); second.Body != first.Body {
		t.Errorf("revoked twice: got %s, want %s", second.Body, first.Body)
	}
	s.want(404, "POST", path+"/"+value.NewID().String()+"/revoke", "")
	s.want(404, "POST", strings.Replace(revoke, app.ID.String(), s.create("Other").ID.String(), 1), "")
	if c, _, err := s.Table.Credential(t.Context(), key.TextID()); err != nil || !c.Revoked {
		t.Errorf("credential: got %+v, %v, want it revoked", c, err)
	}
	for _, r := range []reply{list, first, s.want(200, "GET", path, ""), s.want(200, "GET", "/developers/applications", "")} {
		if strings.Contains(r.Body, key.Key) || strings.Contains(r.Body, app.ClientSecret) {
			t.Errorf("an answer shows a secret: %s", r.Body)
		}
	}
}

func TestLimitsAreAConflict(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := "/developers/applications/" + app.ID.String() + "/api-keys"
	for range account.MaxActiveKeys {
		s.want(201, "POST", path, `{"name":"x"}`)
	}
	if got := s.want(409, "POST", path, `{"name":"x"}`); !strings.Contains(got.Body, `"code":"limit_reached"`) {
		t.Errorf("a key too many: got %s", got.Body)
	}
	for range account.MaxApplications - 1 {
		s.create("x")
	}
	if got := s.want(409, "POST", "/developers/applications", `{"name":"x"}`); !strings.Contains(got.Body, `"code":"limit_reached"`) {
		t.Errorf("an application too many: got %s", got.Body)
	}
}

func TestBadInput(t *testing.T) {
	s := newService(t)
	absent := apps + "/" + value.NewID().String() // looked for after the input
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", apps, `{}`, "name required"},
		{"POST", apps, `{"name":"x","rateLimit":5}`, "rateLimit unknown"},
		{"POST", apps, `{"website":"x","rateLimit":5,"description":7}`, "rateLimit unknown, description wrong_type, name required, website invalid_format"},
		{"POST", apps, "{\"name\":\"caf\u00e9 \u0085\",\"website\":\"x\"}", "name invalid_format, website invalid_format"},
		{"PATCH", absent, `{"name":null,"website":7,"redirectUri":"http://example.com"}`, "website wrong_type, name not_allowed, redirectUri invalid_format"},
		{"POST", absent + "/api-keys", `{"name":"x","scopes":[]}`, "scopes out_of_range"},
		{"POST", absent + "/api-keys", `{"scopes":"all","siteIds":[],"expiresAt":"2026","key":"x"}`, "scopes wrong_type, expiresAt invalid_format, key unknown, name required, siteIds out_of_range"},
		{"PUT", absent + "/token-scopes", `{}`, "scopes required"},
		{"PUT", absent + "/token-scopes", `{"scopes":[]}`, "scopes out_of_range"},
		{"PUT", absent + "/token-scopes", `{"scopes":["orders:read","developers:read"]}`, "scopes[1] unknown"},
		{"GET", absent + "/api-keys?status=active", "", "status invalid_format"},
		{"GET", apps + "?orderBy=updatedAt", "", "orderBy invalid_format"},
		{"GET", absent + "?expand=keys", "", "expand unknown"},
		{"GET", apps + "/shop", "", "id invalid_format"},
		{"POST", absent + "/api-keys/x/revoke", "", "keyId invalid_format"},
	} {
		t.Run(tt.method+" "+tt.body, func(t *testing.T) {
			p := decode[api.Problem](t, s.want(400, tt.method, tt.path, tt.body))
			var got []string
			for _, d := range p.Details {
				got = append(got, d.Field+" "+d.Code)
			}
			if strings.Join(got, ", ") != tt.want || p.Message != p.Details[0].Field+" "+p.Details[0].Message {
				t.Errorf("got %s: %s, want %s", p.Message, strings.Join(got, ", "), tt.want)
			}
		})
	}
	for body, want := range map[string]string{
		`{"name":" caf\u00e9\n1"}`:        "name must be one line without control characters: character 5 is U+000A",
		"{\"name\":\"caf\u00e9 \u0085\"}": "name must not contain control characters: character 6 is U+0085",
		"{\"name\":\"caf\u00e9\n\"}":      "the body is not valid JSON: name holds a control character unescaped: character 14 of the body is U+000A",
	} {
		t.Run(want, func(t *testing.T) {
			if p := decode[api.Problem](t, s.want(400, "POST", apps, body)); p.Message != want {
				t.Errorf("got %s, want %s", p.Message, want)
			}
		})
	}
}

// request is a call of an operation on the application and the key.
type request struct{ method, path, body string }

func requests(app, key value.ID) []request {
	one := apps + "/" + app.String()
	return []request{
		{"GET", one, ""},
		{"PATCH", one, `{"name":"taken over"}`},
		{"POST", one + "/suspend", ""},
		{"POST", one + "/activate", ""},
		{"POST", one + "/rotate-secret", ""},
		{"GET", one + "/token-scopes", ""},
		{"PUT", one + "/token-scopes", `{"scopes":["orders:read"]}`},
		{"GET", one + "/usage", ""},
		{"POST", one + "/api-keys", `{"name":"x"}`},
		{"GET", one + "/api-keys", ""},
		{"POST", one + "/api-keys/" + key.String() + "/revoke", ""},
		{"DELETE", one, ""},
	}
}

func TestForeign(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	key := s.createKey(app.ID, `{"name":"till"}`)
	owner := s.as
	path := "/developers/applications/" + app.ID.String()
	before := []string{s.want(200, "GET", path, "").Body, s.want(200, "GET", path+"/api-keys", "").Body}

	s.as = person(value.NewID(), auth.Owner)
	own := s.create("Their own") // so that a key of another application is tried too
	absent, absentKey := value.NewID(), value.NewID()
	for i, r := range requests(app.ID, key.ID) {
		missing := requests(absent, absentKey)[i]
		want := s.want(404, missing.method, missing.path, missing.body)
		for _, headers := range [][]string{nil, {"If-Match", `"x"`}, {"If-None-Match", "*"}} {
			got := s.do(r.method, r.path, r.body, headers...)
			if got.Status != want.Status || got.Body != want.Body || cmp.Diff(want.Header, got.Header) != "" {
				t.Errorf("%s %s %v: got %d %s, want %d %s", r.method, r.path, headers, got.Status, got.Body, want.Status, want.Body)
			}
		}
	}
	s.want(404, "POST", "/developers/applications/"+own.ID.String()+"/api-keys/"+key.ID.String()+"/revoke", "")
	page := decode[api.Page[account.Application]](t, s.want(200, "GET", "/developers/applications", ""))
	if page.Meta.Total != 1 || page.Data[0].ID != own.ID {
		t.Errorf("their list: got %+v, want their own application only", page)
	}

	s.as = owner
	after := []string{s.want(200, "GET", path, "").Body, s.want(200, "GET", path+"/api-keys", "").Body}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the application and its keys (-before +after):\n%s", diff)
	}
}

func TestTheListOfApplications(t *testing.T) {
	s := newService(t)
	names := []string{"Ärzte", "apple", "Zebra", "apple", "b", "Über Shop", "ubershop"}
	ids := map[value.ID]int{}
	var apps []account.Application
	for i, name := range names {
		app := s.create(name)
		ids[app.ID] = i
		apps = append(apps, app)
	}
	suspended := s.want(200, "POST", "/developers/applications/"+apps[2].ID.String()+"/suspend", "")
	changed := decode[account.Application](t, suspended)
	for _, tc := range []struct {
		query string
		want  []int // positions in names
		total int
	}{
		{"", []int{6, 5, 4, 3, 2, 1, 0}, 7},
		{"?orderDirection=asc", []int{0, 1, 2, 3, 4, 5, 6}, 7},
		{"?orderBy=name&orderDirection=DESC", []int{2, 6, 5, 4, 0, 3, 1}, 7},
		{"?orderBy=name&limit=2&page=2", []int{0, 4}, 7},
		{"?limit=5&page=2", []int{1, 0}, 7},
		{"?search=UBER", []int{6, 5}, 2},
		{"?search=shop+uber", []int{6, 5}, 2},
		{"?search=x", nil, 0},
		{"?status=SUSPENDED,ACTIVE&search=a", []int{3, 2, 1, 0}, 4},
		{"?status=ACTIVE", []int{6, 5, 4, 3, 1, 0}, 6},
		{"?createdFrom=" + apps[1].CreatedAt.String() + "&createdTo=" + apps[3].CreatedAt.String(), []int{2, 1}, 2},
		{"?updatedFrom=" + changed.UpdatedAt.String(), []int{2}, 1},
		{"?afterId=00000000-0000-0000-0000-000000000000&limit=3", []int{0, 1, 2}, 7},
		{"?afterId=" + apps[2].ID.String() + "&limit=3", []int{3, 4, 5}, 7},
		{"?afterId=" + apps[6].ID.String(), nil, 7},
	} {
		page := decode[api.Page[account.Application]](t, s.want(200, "GET", "/developers/applications"+tc.query, ""))
		var got []int
		for _, app := range page.Data {
			got = append(got, ids[app.ID])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || page.Meta.Total != tc.total {
			t.Errorf("%q: total %d, want %d; entries (-want +got):\n%s", tc.query, page.Meta.Total, tc.total, diff)
		}
	}
}

func TestTheListOfKeys(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := "/developers/applications/" + app.ID.String() + "/api-keys"
	soon := s.Now().Add(time.Second)
	var keys []account.CreatedKey
	for i := range 4 {
		body := `{"name":"key ` + strconv.Itoa(i) + `"}`
		if i == 1 {
			body = `{"name":"short","expiresAt":"` + soon.String() + `"}`
		}
		keys = append(keys, s.createKey(app.ID, body))
	}
	s.want(200, "POST", path+"/"+keys[2].ID.String()+"/revoke", "")
	s.Pass(2 * time.Second)
	for _, tc := range []struct {
		query string
		want  string
	}{
		{"", "key 3 ACTIVE, key 2 REVOKED, short EXPIRED, key 0 ACTIVE"},
		{"?status=ACTIVE", "key 3 ACTIVE, key 0 ACTIVE"},
		{"?status=EXPIRED,REVOKED&orderDirection=asc", "short EXPIRED, key 2 REVOKED"},
		{"?search=KEY&limit=1&page=2", "key 2 REVOKED"},
	} {
		page := decode[api.Page[account.APIKey]](t, s.want(200, "GET", path+tc.query, ""))
		var got []string
		for _, k := range page.Data {
			got = append(got, k.Name+" "+string(k.Status))
		}
		if joined := strings.Join(got, ", "); joined != tc.want {
			t.Errorf("%q: got %s, want %s", tc.query, joined, tc.want)
		}
	}
	empty := s.want(200, "GET", "/developers/applications/"+s.create("Empty").ID.String()+"/api-keys", "")
	if want := `{"data":[],"meta":{"page":1,"limit":20,"total":0,"totalPages":0}}`; empty.Body != want {
		t.Errorf("no keys: got %s, want %s", empty.Body, want)
	}
}
