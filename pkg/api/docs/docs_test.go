package docs

import (
	"cmp"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/docs/markdown"
)

// get asks for a path of a service below the base URL.
func get(t *testing.T, baseURL, path string) (*http.Response, string) {
	t.Helper()
	server := api.NewServer(Operations(markdown.HTML), api.Config{
		Caller: func(*http.Request) api.Caller { return api.Caller{BaseURL: baseURL} },
		Clock:  time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

func TestPagesLinkBelowTheBasePath(t *testing.T) {
	for path, wants := range map[string][]string{
		"/docs":             {`href="/prod/docs/first-integration"`, `href="/prod/docs/reference"`, `src="/prod/docs/docs.js"`},
		"/docs/":            {`href="/prod/docs/first-integration"`},
		"/docs/deliveries":  {`<h2 id="alerts">Alerts</h2>`, `href="/prod/docs/deliveries" aria-current="page"`},
		"/docs/webhooks":    {`<p><code>receiver.py</code></p>`, `<div class="languages"><p><code>verify.sh</code></p>`, `<pre tabindex="0"><code class="language-python">`, `href="/prod/portal#/signature"`},
		"/docs/lists":       {`<div class="languages"><pre tabindex="0"><code class="language-sh">curl `},
		"/docs/reference":   {`data-document="/prod/openapi.json"`},
		"/docs/index.md":    {"](https://a.example/prod/docs/webhooks.md)", "](https://a.example/prod/docs/reference.md)"},
		"/docs/webhooks.md": {"](https://a.example/prod/docs/deliveries.md#rotating-a-secret)", "](https://a.example/prod/portal#/signature)"},
		"/docs/reference.md": {
			"### List products\n\n`GET /api/products`\n", "- `search` (query; string; at most 200 characters): ", "- `limit` (query; integer; 1 to 100; default 20): ",
			"- `ids` (query; string[]; 1 to 100 entries; uuid): ", "(query; string; default createdAt; values ", "- Answers: 200 [ProductPage](#schema-productpage), application/x-ndjson, text/csv, 304, 400, ",
			"- Body: [CreateWebhookEndpointDto](#schema-createwebhookendpointdto)\n- Answers: 201 [WebhookEndpoint](#schema-webhookendpoint), ",
			"### Schema Order\n", "- `items` ([OrderItem](#schema-orderitem)[]): ", "- `billingAddress` ([Address](#schema-address) or null): ",
			"- `completedAt` (string or null; date-time): ", "open enumeration: UNFULFILLED, PARTIALLY_FULFILLED, ",
			"- `retryCount` (integer or null; int64; 0 to 10; default 8; optional): ",
		},
		"/docs/swagger-ui.css": {".swagger-ui"},
		"/docs/errors":         {`<tr id="cursor_expired"><td><code>cursor_expired</code></td>`, `<nav class="contents" aria-label="On this page">`, `<a rel="next" href="/prod/docs/limits">Next: Limits</a>`},
		"/docs/changelog.atom": {`<link href="https://a.example/prod/docs/changelog#100-2026-11-21"/>`, "<updated>2026-11-21T00:00:00Z</updated>", `<content type="html">`},
		"/llms.txt":            {"# Commerce Integration Service\n\n> ", "](https://a.example/prod/docs/webhooks.md)", "](https://a.example/prod/openapi.json)"},
	} {
		r, body := get(t, "https://a.example/prod", path)
		if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != cacheable || !slices.Equal(r.Header.Values("X-Content-Type-Options"), []string{"nosniff"}) || !strings.HasPrefix(r.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
			t.Errorf("%s: got %d %v", path, r.StatusCode, r.Header)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s", path, want)
			}
		}
		if strings.Contains(body, basePath) || regexp.MustCompile(`{{\w`).MatchString(body) {
			t.Errorf("%s has a placeholder", path)
		}
	}
}

func TestTheDocumentsServerIsTheServedAddress(t *testing.T) {
	etags := map[string]string{}
	for _, base := range []string{"https://a.example/prod", "http://127.0.0.1:3000"} {
		r, body := get(t, base, "/openapi.json")
		var document struct {
			Servers []struct {
				URL string `json:"url"`
			} `json:"servers"`
		}
		if err := json.Unmarshal([]byte(body), &document); err != nil || len(document.Servers) != 1 || document.Servers[0].URL != base {
			t.Errorf("%s: got %v, %v", base, document.Servers, err)
		}
		if other := etags[r.Header.Get("ETag")]; other != "" {
			t.Errorf("%s and %s have one ETag", base, other)
		}
		etags[r.Header.Get("ETag")] = base
	}
}

func TestWhatIsNoPageIs404(t *testing.T) {
	for _, path := range []string{"/docs/nothing", "/docs/nothing.md", "/docs/page.html.md", "/docs/nothing.css", "/docs/page.html", "/docs/..%2fdocs.go", "/docs/a/b"} {
		if r, body := get(t, "https://a.example", path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d %s, want 404", path, r.StatusCode, body)
		}
	}
}

func TestTheStartPageListsEveryGuide(t *testing.T) {
	files, err := guides.ReadDir("guides")
	if err != nil {
		t.Fatal(err)
	}
	list := navigation(entries(), start)
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".md"); name != start && !strings.Contains(list, `href="`+pageURL(name)+`"`) {
			t.Errorf("index.md does not list %s", f.Name())
		}
	}
}

// TestEveryCodeHasARow holds the table of codes to the code that gives them.
func TestEveryCodeHasARow(t *testing.T) {
	_, page := get(t, "https://a.example", "/docs/errors")
	given := regexp.MustCompile(`fault\.New\(fault\.\w+, "(\w+)"|Code\w* *[:=] *"([a-z]+(?:_[a-z]+)*)"|code[A-Z]\w* *= *"(\w+)"`)
	codes := 0
	for _, folder := range []string{"..", "../../auth", "../../account", "../../base", "../../commerce", "../../dynamo", "../../index", "../../lists", "../../webhook"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../oauth/") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range given.FindAllStringSubmatch(string(text), -1) {
				code := cmp.Or(found[1:]...)
				codes++
				if !strings.Contains(page, `<tr id="`+code+`">`) {
					t.Errorf("%s gives the code %s, which errors.md does not explain", path, code)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if codes < 25 {
		t.Errorf("found only %d codes", codes)
	}
}
