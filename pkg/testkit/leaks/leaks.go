// Package leaks finds secrets where none may be. A [Watch] collects the secrets
// that the service makes in a test, from the answers that show them, and those
// that the test makes itself. Each may be in the one answer that made it, or in a
// repetition of that answer; parts of it may be in no other answer, in no line of
// the log and in no stored item, neither as they are nor in base64 or hex.
package leaks

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// form is the form of every secret that the service makes: API keys, client
// secrets, webhook secrets, codes and refresh tokens, and tokens of its own and of users.
var form = regexp.MustCompile(`cis_live_[0-9A-Za-z]{46}|cs_[0-9A-Za-z]{40}|whsec_[0-9A-Za-z+/]{43}=|(?:ac|ps|rt)_[0-9a-f-]{36}(?:_[0-9A-Za-z]{40})+|eyJ[\w-]+\.[\w-]+\.[\w-]+`)

// makers are the methods, and the ends of the paths, that make a secret and show
// it.
var makers = []string{"POST /applications", "POST /api-keys", "POST /endpoints", "POST /rotate-secret", "POST /oauth/token", "POST /developers/grants", "POST /portal-sessions", "POST /sources", "PUT /alerts"}

// partLength is how much of a secret counts as a leak, in bytes. More of one is
// public only of an API key, whose secret part begins after its identifier.
const partLength = 12

// Watch looks for leaks. It is safe for concurrent use.
type Watch struct {
	mu      sync.Mutex
	log     bytes.Buffer
	secrets map[string]bool
	parts   map[string]string // the secret by each of its parts
	renewed map[string]bool   // the answers with a refresh token, which may be repeated
	leaks   []string
}

// New returns a watch that knows no secret.
func New() *Watch {
	return &Watch{secrets: map[string]bool{}, parts: map[string]string{}, renewed: map[string]bool{}}
}

// Write adds to the log, as what the service is to log to.
func (w *Watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// Log is the log up to now.
func (w *Watch) Log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// Logger returns a logger of all levels whose log is watched.
func (w *Watch) Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Made tells of secrets that no answer may show.
func (w *Watch) Made(secrets ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range secrets {
		w.add(s)
	}
}

// add keeps the parts of a secret that are searched for: of its beginning and of
// its end, without what masks show.
func (w *Watch) add(secret string) {
	w.secrets[secret] = true
	core := secret
	switch {
	case strings.HasPrefix(secret, "cis_live_"):
		core = secret[len("cis_live_")+8:]
	case strings.HasPrefix(secret, "eyJ"):
		core = secret[strings.LastIndexByte(secret, '.')+1:] // what is before it proves nothing
	case strings.HasPrefix(secret, "ac_"), strings.HasPrefix(secret, "ps_"), strings.HasPrefix(secret, "rt_"):
		core = secret[strings.LastIndexByte(secret, '_')+1:]
	default:
		_, core, _ = strings.Cut(secret, "_")
		if core == "" {
			core = secret
		}
	}
	tail := core[len(core)-partLength-4:] // masks show the last four
	found := []string{
		core, tail, hex.EncodeToString([]byte(core)), base64.StdEncoding.EncodeToString([]byte(core)),
		base64.StdEncoding.EncodeToString([]byte(secret[:len(secret)/3*3]))[len(secret)/3*4-partLength:],
	}
	if raw, err := base64.StdEncoding.DecodeString(core); err == nil {
		found = append(found, string(raw), hex.EncodeToString(raw))
	}
	for _, part := range found {
		w.parts[part[:partLength]] = secret
	}
}

// Answered looks at an answer.
func (w *Watch) Answered(r *http.Request, header http.Header, body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := "the answer to " + r.Method + " " + r.URL.Path
	if header.Get("Idempotency-Replayed") != "" || w.renewed[body] {
		return
	}
	answer := body
	var made []string
	for _, secret := range form.FindAllString(body, -1) {
		switch {
		case strings.Contains(secret, "exampleexample"): // of the document
			body = strings.ReplaceAll(body, secret, "")
		case !w.secrets[secret] && makes(r):
			if strings.HasPrefix(secret, "rt_") { // it comes with an access token
				w.renewed[answer] = true
			} else {
				made = append(made, secret)
			}
			body = strings.Replace(body, secret, "", 1)
			w.add(secret)
		case !w.secrets[secret]:
			w.leaks = append(w.leaks, fmt.Sprintf("%s shows a secret: %s", what, secret))
		}
	}
	if len(made) > 1 {
		w.leaks = append(w.leaks, fmt.Sprintf("%s shows %d secrets", what, len(made)))
	}
	w.search(what, body)
	w.search(what, fmt.Sprint(header))
}

func makes(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	return slices.ContainsFunc(makers, func(maker string) bool {
		method, end, _ := strings.Cut(maker, " ")
		return r.Method == method && strings.HasSuffix(path, end)
	})
}

// Stored looks at what is stored under a name.
func (w *Watch) Stored(name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.search("item "+name, text)
}

func (w *Watch) search(what, text string) {
	for part, secret := range w.parts {
		if at := strings.Index(text, part); at >= 0 {
			w.leaks = append(w.leaks, fmt.Sprintf("%s holds a part of the secret %s: …%q…", what, secret, text[max(0, at-80):min(len(text), at+80)]))
		}
	}
}

// Handler returns h with its answers watched.
func (w *Watch) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		w.Answered(r, recorder.Header(), recorder.Body.String())
		for name, values := range recorder.Header() {
			out.Header()[name] = values
		}
		out.WriteHeader(recorder.Code)
		_, _ = recorder.Body.WriteTo(out)
	})
}

// Leaks looks through the log and returns every leak that was found.
func (w *Watch) Leaks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.log.String()
	w.search("the log", text)
	for _, secret := range form.FindAllString(text, -1) {
		if !w.secrets[secret] {
			w.leaks = append(w.leaks, "the log holds a secret: "+secret)
		}
	}
	return w.leaks
}
