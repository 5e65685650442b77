package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
)

var (
	now    = time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	silent = slog.New(slog.DiscardHandler)
)

func clock() time.Time { return now }

var (
	organization = value.MustID("018f0000-0000-7000-8000-000000000001")
	site         = value.MustID("018f0000-0000-7000-8000-0000000000a1")
	otherSite    = value.MustID("018f0000-0000-7000-8000-0000000000a2")
)

// allowAll admits everything, unless it refuses.
type allowAll struct {
	refuse bool
	failed *[]string // gets the subjects of client errors
}

func (l allowAll) ClientError(subject string) {
	if l.failed != nil {
		*l.failed = append(*l.failed, subject)
	}
}

func (l allowAll) Admit(_ context.Context, _ int, of ...ratelimit.Subject) (ratelimit.Decision, error) {
	limit := of[0].Limit
	return ratelimit.Decision{Allowed: !l.refuse, Limit: limit, Remaining: limit - 1, Reset: now.Add(time.Minute), RetryAfter: 1500 * time.Millisecond}, nil
}

type widget struct {
	Name string `json:"name"`
}

var long = strings.Repeat("x", 2000)

func operations() []api.Operation {
	return []api.Operation{
		{
			ID: "list", Method: "GET", Path: "/api/widgets", Access: api.Reader, Scope: auth.ProductsRead, Status: 200,
			Params: []api.Param{{Name: "search", In: fault.InQuery, Type: "string"}, {Name: "siteId", In: fault.InQuery, Type: "string"}},
			Handle: func(*api.Request) (*api.Response, error) { return api.OK(widget{Name: long}) },
		},
		{
			ID: "read", Method: "GET", Path: "/api/widgets/{id}", Access: api.Reader, Scope: auth.ProductsRead, Status: 200,
			Handle: func(r *api.Request) (*api.Response, error) {
				return api.OK(widget{Name: r.PathID("id").String()})
			},
		},
		{
			ID: "special", Method: "GET", Path: "/api/widgets/special", Access: api.Public, Status: 200,
			Handle: func(*api.Request) (*api.Response, error) { return api.OK(widget{Name: "special"}) },
		},
		{
			ID: "create", Method: "POST", Path: "/developers/widgets", Access: api.Developer, Scope: auth.DevelopersWrite, Status: 201, Body: widget{},
			Handle: func(r *api.Request) (*api.Response, error) {
				var w widget
				if err := strictjson.Unmarshal(r.Body, &w); err != nil {
					return nil, err
				}
				return r.Created("/developers/widgets/1", w, "")
			},
		},
		{
			ID: "act", Method: "POST", Path: "/developers/widgets/{id}/act", Access: api.Developer, Scope: auth.DevelopersWrite, Status: 200,
			Handle: func(*api.Request) (*api.Response, error) { return api.OK(widget{Name: "acted"}) },
		},
		{
			ID: "change", Method: "PATCH", Path: "/developers/widgets/{id}", Access: api.Developer, Scope: auth.DevelopersWrite, Status: 200, Body: widget{},
			Handle: func(r *api.Request) (*api.Response, error) {
				if err := r.CheckIfMatch(`"current"`); err != nil {
					return nil, err
				}
				return api.NoContent()
			},
		},
		{
			ID: "break", Method: "GET", Path: "/break", Access: api.Public, Status: 200,
			Handle: func(*api.Request) (*api.Response, error) { return nil, errors.New("secret inside") },
		},
		{
			ID: "busy", Method: "GET", Path: "/busy", Access: api.Public, Status: 200,
			Handle: func(*api.Request) (*api.Response, error) {
				return nil, fmt.Errorf("secret inside: %w", context.DeadlineExceeded)
			},
		},
		{
			ID: "packed", Method: "GET", Path: "/packed", Access: api.Public, Status: 200, MediaType: "text/plain",
			Handle: func(*api.Request) (*api.Response, error) {
				var packed bytes.Buffer
				w := gzip.NewWriter(&packed)
				_, err := w.Write([]byte("unpacked"))
				err = errors.Join(err, w.Close())
				return &api.Response{Raw: packed.Bytes(), Header: http.Header{"Content-Encoding": {"gzip"}}}, err
			},
		},
		{
			ID: "panic", Method: "GET", Path: "/panic", Access: api.Public, Status: 200,
			Handle: func(*api.Request) (*api.Response, error) { panic("secret inside") },
		},
	}
}

func user() auth.Principal {
	return auth.Principal{Kind: auth.KindUser, OrganizationID: organization, UserID: value.NewID(), Scopes: auth.AllScopes(), RateLimit: 600}
}

func apiKey() auth.Principal {
	return auth.Principal{Kind: auth.KindKey, OrganizationID: organization, ApplicationID: value.NewID(), KeyID: value.NewID(), Scopes: auth.ReadScopes(), RateLimit: 600}
}

func serve(t *testing.T, p *auth.Principal, limiter api.Limiter) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(api.NewServer(operations(), config(p, limiter)))
	t.Cleanup(server.Close)
	return server
}

func config(p *auth.Principal, limiter api.Limiter) api.Config {
	return api.Config{
		Caller: func(*http.Request) api.Caller {
			c := api.Caller{RequestID: "request-1", BaseURL: "https://host/prod"}
			if p == nil {
				c.Err = auth.ErrNoPrincipal
			} else {
				c.Principal = *p
			}
			return c
		},
		Limiter: limiter, Clock: clock, Logger: silent,
	}
}

type call struct {
	method, path, body string
	header             map[string]string
}

func do(t *testing.T, base string, c call) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.method, base+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range c.header {
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func TestRequestsAreRefusedInOurErrorShape(t *testing.T) {
	u, k := user(), apiKey()
	limited, expired, narrow := apiKey(), user(), apiKey()
	limited.SiteIDs = []value.ID{site}
	expired.ExpiresAt = now
	narrow.Scopes = auth.Scopes{auth.OrdersRead}
	typed := map[string]string{"Content-Type": "application/json"}
	tests := []struct {
		name      string
		principal *auth.Principal
		refuse    bool
		call      call
		status    int
		code      string
		field     string
	}{
		{"an unknown path", nil, false, call{method: "GET", path: "/nowhere"}, 404, "not_found", ""},
		{"another method needs no credentials", nil, false, call{method: "PUT", path: "/api/widgets"}, 405, "method_not_allowed", ""},
		{"no principal", nil, false, call{method: "GET", path: "/api/widgets"}, 401, "unauthenticated", ""},
		{"an expired principal", &expired, false, call{method: "GET", path: "/api/widgets"}, 401, "token_expired", ""},
		{"a key in the developers area", &k, false, call{method: "POST", path: "/developers/widgets", body: "{}", header: typed}, 403, "insufficient_scope", ""},
		{"a missing scope", &narrow, false, call{method: "GET", path: "/api/widgets"}, 403, "insufficient_scope", "products:read"},
		{"the rate comes before the scope", &narrow, true, call{method: "GET", path: "/api/widgets"}, 429, "rate_limited", ""},
		{"another site in the query", &limited, false, call{method: "GET", path: "/api/widgets?siteId=" + otherSite.String()}, 403, "site_forbidden", ""},
		{"another site in the header", &limited, false, call{method: "GET", path: "/api/widgets", header: map[string]string{"X-Site-Id": otherSite.String()}}, 403, "site_forbidden", ""},
		{"a bad UUID in the path", &k, false, call{method: "GET", path: "/api/widgets/7"}, 400, "validation_failed", "id"},
		{"an unknown parameter", &k, false, call{method: "GET", path: "/api/widgets?colour=red"}, 400, "validation_failed", "colour"},
		{"an unknown parameter that is not UTF-8", &k, false, call{method: "GET", path: "/api/widgets?%ff=1"}, 400, "validation_failed", "\uFFFD"},
		{"a repeated parameter", &k, false, call{method: "GET", path: "/api/widgets?search=a&search=b"}, 400, "validation_failed", "search"},
		{"an empty parameter", &k, false, call{method: "GET", path: "/api/widgets?siteId="}, 400, "validation_failed", "siteId"},
		{"a control character in the query", &k, false, call{method: "GET", path: "/api/widgets?search=a%00"}, 400, "validation_failed", "search"},
		{"a byte in the query that is not UTF-8", &k, false, call{method: "GET", path: "/api/widgets?search=%ff"}, 400, "validation_failed", "search"},
		{"one that the gateway has replaced", &k, false, call{method: "GET", path: "/api/widgets?search=%EF%BF%BD"}, 400, "validation_failed", "search"},
		{"Accept without JSON", &k, false, call{method: "GET", path: "/api/widgets", header: map[string]string{"Accept": "text/html, application/json;q=0"}}, 406, "not_acceptable", ""},
		{"a body of another type", &u, false, call{method: "POST", path: "/developers/widgets", body: "{}", header: map[string]string{"Content-Type": "text/plain"}}, 415, "unsupported_media_type", ""},
		{"a body of another charset", &u, false, call{method: "POST", path: "/developers/widgets", body: "{}", header: map[string]string{"Content-Type": "application/json; charset=latin1"}}, 415, "unsupported_media_type", ""},
		{"a compressed body", &u, false, call{method: "POST", path: "/developers/widgets", body: "{}", header: map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}}, 415, "unsupported_media_type", ""},
		{"a body over the bound", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"name":"` + strings.Repeat("x", api.MaxBody) + `"}`, header: typed}, 413, "payload_too_large", ""},
		{"an unknown field", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"nome":"x"}`, header: typed}, 400, "validation_failed", "nome"},
		{"a duplicate field", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"name":"x","name":"y"}`, header: typed}, 400, "validation_failed", "name"},
		{"a wrong type", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"name":7}`, header: typed}, 400, "validation_failed", "name"},
		{"a control character", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"name":"\u0000"}`, header: typed}, 400, "validation_failed", "name"},
		{"broken JSON", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"name":`, header: typed}, 400, "malformed_json", ""},
		{"trailing data", &u, false, call{method: "POST", path: "/developers/widgets", body: `{"name":"x"} {}`, header: typed}, 400, "malformed_json", ""},
		{"an empty body", &u, false, call{method: "POST", path: "/developers/widgets", header: typed}, 400, "malformed_json", ""},
		{"a body where none is taken", &u, false, call{method: "POST", path: "/developers/widgets/" + site.String() + "/act", body: `{"a":1}`, header: typed}, 400, "validation_failed", "a"},
		{"If-Match of another version", &u, false, call{method: "PATCH", path: "/developers/widgets/" + site.String(), body: `{}`, header: map[string]string{"Content-Type": "application/json", "If-Match": `"old"`}}, 412, "precondition_failed", ""},
		{"a weak If-Match", &u, false, call{method: "PATCH", path: "/developers/widgets/" + site.String(), body: `{}`, header: map[string]string{"Content-Type": "application/json", "If-Match": `W/"current"`}}, 412, "precondition_failed", ""},
		{"an error of ours", nil, false, call{method: "GET", path: "/break"}, 500, "internal", ""},
		{"a table that is too busy", nil, false, call{method: "GET", path: "/busy"}, 503, "unavailable", ""},
		{"a panic", nil, false, call{method: "GET", path: "/panic"}, 500, "internal", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := serve(t, tt.principal, allowAll{refuse: tt.refuse})
			resp, body := do(t, server.URL, tt.call)
			var p api.Problem
			if err := json.Unmarshal(body, &p, json.RejectUnknownMembers(true)); err != nil {
				t.Fatalf("%s %s: body %s: %v", tt.call.method, tt.call.path, body, err)
			}
			if resp.StatusCode != tt.status || p.StatusCode != tt.status || p.Code != tt.code || p.RequestID != "request-1" || p.Error != http.StatusText(tt.status) {
				t.Fatalf("%s %s: got %d %s, want %d %s", tt.call.method, tt.call.path, resp.StatusCode, body, tt.status, tt.code)
			}
			if tt.field != "" && (len(p.Details) != 1 || p.Details[0].Field != tt.field) {
				t.Errorf("details: got %+v, want one of %s", p.Details, tt.field)
			}
			if bytes.Contains(body, []byte("secret")) {
				t.Errorf("the answer tells of the inside: %s", body)
			}
			if tt.status == 405 && resp.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: got %q, want GET, HEAD", resp.Header.Get("Allow"))
			}
			if tt.status == 503 && resp.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After: got %q, want 1", resp.Header.Get("Retry-After"))
			}
			if tt.status == 429 && resp.Header.Get("Retry-After") != "2" {
				t.Errorf("Retry-After: got %q, want 2", resp.Header.Get("Retry-After"))
			}
		})
	}
}

// The answer to a small request was many times as large: every name of it came back, some twice.
func TestARefusalIsSmallWhateverTheRequest(t *testing.T) {
	k, u := apiKey(), user()
	parameters := func(n int) call {
		var query strings.Builder
		for i := range n {
			query.WriteString("&" + strconv.Itoa(10_000+i) + "=1")
		}
		return call{method: "GET", path: "/api/widgets?" + query.String()[1:]}
	}
	post := func(body string) call {
		return call{method: "POST", path: "/developers/widgets", body: body, header: map[string]string{"Content-Type": "application/json"}}
	}
	huge := strings.Repeat("é", 100_000)
	for _, tt := range []struct {
		name      string
		principal auth.Principal
		call      call
		details   int
	}{
		{"20 unknown parameters", k, parameters(20), 20},
		{"21 unknown parameters", k, parameters(21), 20},
		{"10,000 unknown parameters", k, parameters(10_000), 20},
		{"a parameter's name of 200 KB", k, call{method: "GET", path: "/api/widgets?" + huge + "=1"}, 1},
		{"a field's name of 200 KB", u, post(`{"` + huge + `":1}`), 1},
		{"a duplicate name of 200 KB", u, post(`{"` + huge[:100_000] + `":1,"` + huge[:100_000] + `":1}`), 1},
		{"broken JSON below a name of 200 KB", u, post(`{"` + huge + "\":{\"\x01"), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := do(t, serve(t, &tt.principal, allowAll{}).URL, tt.call)
			var p api.Problem
			if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != 400 || len(p.Details) != tt.details {
				t.Fatalf("got %d with %d details, %v", resp.StatusCode, len(p.Details), err)
			}
			if tt.details == 20 && p.Details[0].Field != "10000" {
				t.Errorf("the first detail is of %s, want the first by name", p.Details[0].Field)
			}
			if len(body) > 4<<10 {
				t.Errorf("got %d bytes: %.200s", len(body), body)
			}
		})
	}
}

func TestAnswersCarryTheRateLimitAndRequestID(t *testing.T) {
	k := apiKey()
	resp, _ := do(t, serve(t, &k, allowAll{}).URL, call{method: "GET", path: "/api/widgets/bad"})
	reset := strconv.FormatInt(now.Add(time.Minute).Unix(), 10)
	for name, want := range map[string]string{
		"X-Request-Id": "request-1", "X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "599", "X-RateLimit-Reset": reset,
	} {
		t.Run(name, func(t *testing.T) {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestALiteralSegmentWinsAndATrailingSlashIsTheSameRoute(t *testing.T) {
	server := serve(t, nil, allowAll{})
	for _, path := range []string{"/api/widgets/special", "/api/widgets/special/"} {
		t.Run(path, func(t *testing.T) {
			if resp, body := do(t, server.URL, call{method: "GET", path: path}); resp.StatusCode != 200 || string(body) != `{"name":"special"}` {
				t.Errorf("GET %s: got %d %s, want the literal route", path, resp.StatusCode, body)
			}
		})
	}
}

func TestConditionalAndCompressedReads(t *testing.T) {
	k := apiKey()
	server := serve(t, &k, allowAll{})
	plain, body := do(t, server.URL, call{method: "GET", path: "/api/widgets", header: map[string]string{"Accept-Encoding": "identity"}})
	tag := plain.Header.Get("ETag")
	if tag != api.ETagOf(body) || plain.Header.Get("Vary") != "Authorization, X-API-Key, X-Site-Id, Accept, Accept-Encoding" || plain.Header.Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("headers of a read: %v", plain.Header)
	}
	zipped, zbody := do(t, server.URL, call{method: "GET", path: "/api/widgets", header: map[string]string{"Accept": "application/json", "Accept-Encoding": "br, gzip"}})
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("ETag") == tag {
		t.Fatalf("headers of a compressed read: %v", zipped.Header)
	}
	r, err := gzip.NewReader(bytes.NewReader(zbody))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
		t.Fatalf("decompressed: got %d bytes, %v; want the plain body", len(got), err)
	}
	for _, inm := range []string{tag, zipped.Header.Get("ETag"), "W/" + tag, `"x", ` + tag, "*"} {
		if resp, b := do(t, server.URL, call{method: "GET", path: "/api/widgets", header: map[string]string{"If-None-Match": inm}}); resp.StatusCode != 304 || len(b) != 0 {
			t.Errorf("If-None-Match %s: got %d with %d bytes, want 304", inm, resp.StatusCode, len(b))
		}
	}
	if unasked, got := do(t, server.URL, call{method: "GET", path: "/api/widgets", header: map[string]string{"Accept-Encoding": "gzip"}}); unasked.Header.Get("Content-Encoding") != "" || unasked.Header.Get("ETag") != tag || !bytes.Equal(got, body) {
		t.Errorf("without Accept: got %v, want the plain body", unasked.Header)
	}
	head, hbody := do(t, server.URL, call{method: "HEAD", path: "/api/widgets", header: map[string]string{"Accept-Encoding": "identity"}})
	if head.StatusCode != 200 || len(hbody) != 0 || head.Header.Get("ETag") != tag {
		t.Errorf("HEAD: got %d, %d bytes, ETag %s; want 200, 0, %s", head.StatusCode, len(hbody), head.Header.Get("ETag"), tag)
	}
}

func TestANotModifiedAnswerHasTheTagOfTheFullOne(t *testing.T) {
	k := apiKey()
	server := serve(t, &k, allowAll{})
	for _, encoding := range []string{"identity", "gzip"} {
		t.Run(encoding, func(t *testing.T) {
			get := func(tag string) *http.Response {
				resp, _ := do(t, server.URL, call{method: "GET", path: "/api/widgets", header: map[string]string{"Accept": "*/*", "Accept-Encoding": encoding, "If-None-Match": tag}})
				return resp
			}
			want := get(`"x"`).Header.Get("ETag")
			if got := get(want); got.StatusCode != 304 || got.Header.Get("ETag") != want || got.Header.Get("Content-Encoding") != "" {
				t.Errorf("got %d %v, want 304 with the ETag %s and no encoding", got.StatusCode, got.Header, want)
			}
		})
	}
}

func TestAStoredCompressedBodyIsUnpackedForWhoDoesNotTakeIt(t *testing.T) {
	server := serve(t, nil, allowAll{})
	plain, body := do(t, server.URL, call{method: "GET", path: "/packed", header: map[string]string{"Accept-Encoding": "identity"}})
	if plain.Header.Get("Content-Encoding") != "" || string(body) != "unpacked" {
		t.Errorf("identity: got %q as %q, want it unpacked", body, plain.Header.Get("Content-Encoding"))
	}
	packed, body := do(t, server.URL, call{method: "GET", path: "/packed", header: map[string]string{"Accept": "*/*", "Accept-Encoding": "gzip"}})
	if packed.Header.Get("Content-Encoding") != "gzip" || string(body) == "unpacked" || packed.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Errorf("gzip: got %q as %q with the ETag %s, want it as it is stored and a tag of its own", body, packed.Header.Get("Content-Encoding"), packed.Header.Get("ETag"))
	}
}

func TestErrorsAreNotCachedAndLinkToTheirCode(t *testing.T) {
	resp, _ := do(t, serve(t, nil, allowAll{}).URL, call{method: "GET", path: "/nowhere"})
	if resp.Header.Get("Cache-Control") != "private, no-cache" || resp.Header.Get("Vary") == "" ||
		resp.Header.Get("Link") != `<https://host/prod/docs/errors#not_found>; rel="help"` {
		t.Errorf("headers of a 404: %v", resp.Header)
	}
}

func TestCreatedAnswersAnAbsoluteLocation(t *testing.T) {
	u := user()
	resp, body := do(t, serve(t, &u, allowAll{}).URL, call{
		method: "POST", path: "/developers/widgets", body: `{"name":"x"}`, header: map[string]string{"Content-Type": "application/json; charset=UTF-8"},
	})
	if resp.StatusCode != 201 || resp.Header.Get("Location") != "https://host/prod/developers/widgets/1" || string(body) != `{"name":"x"}` {
		t.Errorf("got %d %s %s", resp.StatusCode, resp.Header.Get("Location"), body)
	}
}

func TestIfMatch(t *testing.T) {
	u := user()
	server := serve(t, &u, allowAll{})
	for _, tag := range []string{`"current"`, `"a", "current"`, "*", `"current-gzip"`} {
		t.Run(tag, func(t *testing.T) {
			resp, body := do(t, server.URL, call{
				method: "PATCH", path: "/developers/widgets/" + site.String(), body: `{}`,
				header: map[string]string{"Content-Type": "application/json", "If-Match": tag},
			})
			if resp.StatusCode != 204 {
				t.Errorf("If-Match %s: got %d %s, want 204", tag, resp.StatusCode, body)
			}
		})
	}
}

func TestClientErrorsOfAdmittedRequestsAreCounted(t *testing.T) {
	caller := apiKey()
	for _, test := range []struct {
		name, path string
		principal  *auth.Principal
		refuse     bool
		want       []string
	}{
		{"a success", "/api/widgets", &caller, false, nil},
		{"a bad request", "/api/widgets?x=1", &caller, false, []string{caller.ApplicationID.String()}},
		{"too many requests", "/api/widgets", &caller, true, nil},
		{"no credentials", "/api/widgets", nil, false, nil},
		{"no such path", "/api/gadgets", &caller, false, nil},
		{"an error on our side", "/break", &caller, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var failed []string
			server := serve(t, test.principal, allowAll{refuse: test.refuse, failed: &failed})
			do(t, server.URL, call{method: "GET", path: test.path})
			server.Close() // waits for what follows the answer
			if !slices.Equal(failed, test.want) {
				t.Errorf("counted %v, want %v", failed, test.want)
			}
		})
	}
}
