package app_test

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const portal = "https://portal.example.com"

func TestScriptsOfAllowedOriginsUseTheService(t *testing.T) {
	w := deployed(t, map[string]string{"AllowedOrigins": portal + ",https://admin.example.com"})
	for name, test := range map[string]struct {
		method, path, origin string
		status               int
		want                 string // the origin that may read the answer
	}{
		"an answer":                     {http.MethodGet, "/api/me", portal, 200, portal},
		"the other origin":              {http.MethodGet, "/api/me", "https://admin.example.com", 200, "https://admin.example.com"},
		"an unknown origin":             {http.MethodGet, "/api/me", "https://evil.example", 200, ""},
		"no origin":                     {http.MethodGet, "/api/me", "", 200, ""},
		"an error":                      {http.MethodGet, "/api/me?page=1", portal, 400, portal},
		"a path that is none":           {http.MethodGet, "/nowhere", portal, 404, portal},
		"OPTIONS that asks for nothing": {http.MethodOptions, "/api/me", portal, 405, portal},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"Authorization", "Bearer " + w.userToken(t)}
			if test.origin != "" {
				headers = append(headers, "Origin", test.origin)
			}
			got := w.send(t, test.method, test.path, "", headers...)
			vary := strings.Join(got.Header.Values("Vary"), ", ")
			if got.StatusCode != test.status || got.Header.Get("Access-Control-Allow-Origin") != test.want ||
				!strings.Contains(vary, "Origin") || !strings.Contains(vary, "X-Site-Id") || got.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("got %d, %v; want %d for %q", got.StatusCode, got.Header, test.status, test.want)
			}
		})
	}
	// The gateway's own refusals tell nothing of anybody.
	refused := w.send(t, http.MethodGet, "/api/me", "", "Origin", portal)
	if refused.StatusCode != http.StatusUnauthorized || refused.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("without credentials: got %d, %v", refused.StatusCode, refused.Header)
	}
}

func TestWithoutAllowedOriginsNothingSpeaksOfThem(t *testing.T) {
	w := newGatewayService(t)
	for name, send := range map[string]func() *http.Response{
		"a preflight request": func() *http.Response {
			return w.send(t, http.MethodOptions, "/api/me", "", "Origin", portal, "Access-Control-Request-Method", "GET")
		},
		"an answer":  func() *http.Response { return w.send(t, http.MethodGet, "/health", "", "Origin", portal) },
		"a refusal":  func() *http.Response { return w.send(t, http.MethodGet, "/api/me", "", "Origin", portal) },
		"not a path": func() *http.Response { return w.send(t, http.MethodGet, "/nowhere", "", "Origin", portal) },
	} {
		t.Run(name, func(t *testing.T) {
			got := send()
			if got.Request.Method == http.MethodOptions && got.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("got %d, want 405", got.StatusCode)
			}
			for header := range got.Header {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("got %s", header)
				}
			}
		})
	}
}

// What the document says of headers is what scripts may send and read.
func TestAllowedOriginsMaySendAndReadEveryHeaderOfTheDocument(t *testing.T) {
	raw, err := os.ReadFile(goldenDocument)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	delete(document, "webhooks") // not requests of the API
	sent, read := map[string]bool{"Authorization": true, "X-API-Key": true}, map[string]bool{}
	headersOf(document, sent, read)
	w := deployed(t, map[string]string{"AllowedOrigins": portal})
	exposed := w.send(t, http.MethodGet, "/health", "", "Origin", portal).Header.Get("Access-Control-Expose-Headers")
	for name := range read {
		if !strings.Contains(strings.ToLower(exposed)+",", strings.ToLower(name)+",") {
			t.Errorf("scripts cannot read %s, only %s", name, exposed)
		}
	}
	asked := strings.ToLower(strings.Join(slices.Sorted(maps.Keys(sent)), ","))
	got := w.send(t, http.MethodOptions, "/api/me", "", "Origin", portal, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", asked)
	if got.Header.Get("Access-Control-Allow-Headers") != asked {
		t.Errorf("scripts cannot send %s: %v", asked, got.Header)
	}
	if len(sent) < 6 || len(read) < 8 {
		t.Errorf("found the headers %v and %v only", sent, read)
	}
}

// headersOf gathers the names of the headers that the document has requests send and answers contain. Fields of
// bodies may be called headers, too.
func headersOf(v any, sent, read map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if name, ok := v["name"].(string); ok && v["in"] == "header" {
			sent[name] = true
		}
		headers, _ := v["headers"].(map[string]any)
		for name := range headers {
			read[name] = true
		}
		for name, value := range v {
			if name != "example" && name != "schemas" {
				headersOf(value, sent, read)
			}
		}
	case []any:
		for _, value := range v {
			headersOf(value, sent, read)
		}
	}
}
