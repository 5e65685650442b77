package portal

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/commerce-integration/service/pkg/api"
)

// serve answers a request to the portal of the files, below the base URL.
func serve(t *testing.T, files fs.FS, baseURL, path string, headers ...string) *http.Response {
	t.Helper()
	return serveTo(t, operations(files, SignIn{}, Embedding{}), baseURL, path, headers...)
}

func serveTo(t *testing.T, operations []api.Operation, baseURL, path string, headers ...string) *http.Response {
	t.Helper()
	server := api.NewServer(operations, api.Config{
		Caller: func(*http.Request) api.Caller { return api.Caller{BaseURL: baseURL} },
		Clock:  time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}

func packed(t *testing.T, plain string) *fstest.MapFile {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: out.Bytes()}
}

func sample(t *testing.T) fstest.MapFS {
	t.Helper()
	return fstest.MapFS{
		"index.html": {Data: []byte(`<html data-base="{{base}}"><script src="{{base}}/portal/main.js"></script>`)},
		"main.js.gz": packed(t, "hello()"),
	}
}

func TestThePageKnowsUnderWhichPathTheServiceIs(t *testing.T) {
	for baseURL, want := range map[string]string{
		"http://127.0.0.1:3000":       `<html data-base=""><script src="/portal/main.js"></script>`,
		"https://a.example/prod":      `<html data-base="/prod"><script src="/prod/portal/main.js"></script>`,
		`https://a.example/"><script`: `<html data-base="/%22%3E%3Cscript"><script src="/%22%3E%3Cscript/portal/main.js"></script>`,
	} {
		for _, path := range []string{"/portal", "/portal/"} {
			if got := text(t, serve(t, sample(t), baseURL, path)); got != want {
				t.Errorf("%s%s: got %s, want %s", baseURL, path, got, want)
			}
		}
	}
}

func TestThePageKnowsWherePeopleSignInAndMayAskThere(t *testing.T) {
	files := fstest.MapFS{"index.html": {Data: []byte(`<html data-sign-in="{{signIn}}">`)}}
	at := SignIn{Issuer: "https://id.example/tenant/", ClientID: `"<portal>`, Scope: "openid", Audience: "commerce"}
	cognito := at
	cognito.TokenOrigin = "https://pool.auth.example/ignored"
	named := `<html data-sign-in="{&#34;issuer&#34;:&#34;https://id.example/tenant/&#34;,&#34;clientId&#34;:&#34;\&#34;&lt;portal&gt;&#34;,` +
		`&#34;scope&#34;:&#34;openid&#34;,&#34;audience&#34;:&#34;commerce&#34;}">`
	for name, c := range map[string]struct {
		signIn        SignIn
		page, connect string
	}{
		"nowhere":                         {SignIn{Issuer: "commerce"}, `<html data-sign-in="null">`, "connect-src 'self';"},
		"at the issuer":                   {at, named, "connect-src 'self' https://id.example;"},
		"with a token endpoint elsewhere": {cognito, named, "connect-src 'self' https://id.example https://pool.auth.example;"},
	} {
		r := serveTo(t, operations(files, c.signIn, Embedding{}), "https://a.example", "/portal?code=1&code=2&session_state=")
		if got := text(t, r); r.StatusCode != http.StatusOK || got != c.page {
			t.Errorf("%s: got %d %s, want %s", name, r.StatusCode, got, c.page)
		}
		if got := r.Header.Get("Content-Security-Policy"); !strings.Contains(got, c.connect) {
			t.Errorf("%s: policy %s, want %s", name, got, c.connect)
		}
	}
}

// The page of portal sessions knows no sign-in, and every other no frame.
func TestOnlyThePageOfPortalSessionsMayBeInAFrame(t *testing.T) {
	files := fstest.MapFS{
		"index.html": {Data: []byte(`{{script}} {{signIn}} {{brand}}`)}, "embed.js.gz": packed(t, "hello()"),
	}
	signIn := SignIn{Issuer: "https://id.example", ClientID: "portal"}
	branded, err := ParseEmbedding("https://app.example,http://localhost:*", `A"cme,#0055aa,https://cdn.example/logo.svg`)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		embedding           Embedding
		path, page, sources string
	}{
		"in frames of the operator's": {
			branded, "/portal/embed", `embed null {&#34;name&#34;:&#34;A\&#34;cme&#34;,&#34;colour&#34;:&#34;#0055aa&#34;,&#34;logo&#34;:&#34;https://cdn.example/logo.svg&#34;}`,
			"img-src 'self' data: https://cdn.example; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors https://app.example http://localhost:*",
		},
		"in none": {Embedding{}, "/portal/embed", "", "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"},
		"the portal": {
			branded, "/portal", "", "img-src 'self' data:; connect-src 'self' https://id.example; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
		},
		"authorize": {branded, "/portal/authorize", "", "frame-ancestors 'none'"},
		"a file":    {branded, "/portal/embed.js", "", "frame-ancestors 'none'"},
	} {
		r := serveTo(t, operations(files, signIn, c.embedding), "https://a.example", c.path)
		if got := text(t, r); r.StatusCode != http.StatusOK || c.page != "" && got != c.page {
			t.Errorf("%s: got %d %s, want %s", name, r.StatusCode, got, c.page)
		}
		if got := r.Header.Get("Content-Security-Policy"); !strings.HasSuffix(got, c.sources) {
			t.Errorf("%s: policy %s, want %s", name, got, c.sources)
		}
	}
}

func TestAnEmbeddingIsOfOriginsAndABrand(t *testing.T) {
	for _, c := range []struct {
		frames, brand string
		good          bool
	}{
		{"", "", true},
		{"https://a.example:8443,http://127.0.0.1:3000", "Acme", true},
		{"http://localhost:*", "Acme,#0055AA", true},
		{"http://a.example", "", false},
		{"https://a.example/", "", false},
		{"https://a.example *", "", false},
		{"", "Acme,red", false},
		{"", strings.Repeat("a", 61), false},
		{"", "Acme,#0055aa,https://a.example/;x", false},
		{"", ",#0055aa", false},
	} {
		if _, err := ParseEmbedding(c.frames, c.brand); (err == nil) != c.good {
			t.Errorf("%q %q: %v", c.frames, c.brand, err)
		}
	}
}

func TestFilesAreOfThisOriginOnlyAndAskedForAnew(t *testing.T) {
	for path, mediaType := range map[string]string{"/portal": "text/html; charset=utf-8", "/portal/main.js": "text/javascript; charset=utf-8"} {
		r := serve(t, sample(t), "https://a.example", path)
		if got := r.Header.Get("Content-Type"); r.StatusCode != http.StatusOK || got != mediaType {
			t.Errorf("%s: got %d %s, want 200 %s", path, r.StatusCode, got, mediaType)
		}
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %s", path, policy)
		}
		again := serve(t, sample(t), "https://a.example", path, "If-None-Match", r.Header.Get("Etag"))
		if r.Header.Get("Cache-Control") != "no-cache" || again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %s, and %d with its entity tag", path, r.Header.Get("Cache-Control"), again.StatusCode)
		}
	}
}

func TestTheRootLeadsBrowsersToThePortal(t *testing.T) {
	for accept, want := range map[string]int{
		"text/html,application/xhtml+xml,*/*;q=0.8": http.StatusFound,
		"application/json":                          http.StatusNotFound,
		"*/*":                                       http.StatusNotFound,
		"":                                          http.StatusNotFound,
	} {
		r := serve(t, sample(t), "https://a.example/prod", "/", "Accept", accept)
		if location := r.Header.Get("Location"); r.StatusCode != want || want == http.StatusFound && location != "https://a.example/prod/portal" {
			t.Errorf("Accept %q: got %d to %q, want %d", accept, r.StatusCode, location, want)
		}
	}
}

func TestAProgramWithoutThePageSaysSo(t *testing.T) {
	empty := fstest.MapFS{"placeholder.txt": {}}
	for _, path := range []string{"/portal", "/portal/main.js"} {
		r := serve(t, empty, "https://a.example", path)
		if got := text(t, r); r.StatusCode != http.StatusNotFound || !strings.Contains(got, "built without the portal") {
			t.Errorf("%s: got %d %s", path, r.StatusCode, got)
		}
	}
	for _, path := range []string{"/portal/nothing.js", "/portal/..%2fportal.go"} {
		if r := serve(t, sample(t), "https://a.example", path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, r.StatusCode)
		}
	}
}

// TestTheFirstLoadIsSmall holds the built page to 150 KB, as it goes over the
// network.
func TestTheFirstLoadIsSmall(t *testing.T) {
	files, err := fs.Glob(built, "dist/*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(built, "dist/index.html"); err != nil {
		t.Skip("the page was not built; make portal does")
	}
	const most = 150_000
	size := int64(0)
	for _, name := range files {
		info, err := fs.Stat(built, name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > most {
		t.Errorf("the page has %d bytes, want at most %d", size, most)
	}
}
