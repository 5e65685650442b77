package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// lines is an output that a test can wait on.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) await(t *testing.T, want string) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-l.more:
		case <-deadline:
			t.Fatalf("waited for %q, got %q", want, text)
		}
	}
}

// deliver sends a webhook as the service does.
func deliver(t *testing.T, target, id, body string) int {
	t.Helper()
	webhook, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := webhook.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("webhook-id", id)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("webhook-signature", signature)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// fakeService is the part of the API that listen uses.
type fakeService struct {
	mu      sync.Mutex
	calls   []string
	target  string
	events  []string
	left    string // the endpoints that are there
	refuses bool
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
	switch {
	case s.refuses:
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"statusCode":401,"code":"token_expired","message":"the token has expired"}`)
	case r.Method == http.MethodGet:
		io.WriteString(w, `{"data":[`+s.left+`]}`)
	case r.Method == http.MethodPost:
		var body struct {
			URL    string   `json:"url"`
			Events []string `json:"events"`
		}
		if err := json.UnmarshalRead(r.Body, &body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.target, s.events = body.URL, body.Events
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f42","secret":"`+testSecret+`","status":"ACTIVE"}`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func newService(t *testing.T) (*fakeService, string) {
	t.Helper()
	service := &fakeService{}
	front := httptest.NewServer(service)
	t.Cleanup(front.Close)
	data := t.TempDir()
	err := runner.WriteInfo(data, &runner.Info{BaseURL: front.URL, ApplicationID: "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f41", JWT: "token"})
	if err != nil {
		t.Fatal(err)
	}
	return service, data
}

func TestListenSubscribesShowsEventsAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	service, data := newService(t)
	c := &listenCommand{addr: "127.0.0.1:0", path: "/hooks", data: data, events: []string{"order.*", "payment.completed"}, json: true}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, errOut := newLines(), newLines()
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, out, errOut) }()
	errOut.await(t, "listening on http://127.0.0.1:")

	service.mu.Lock()
	target, events := service.target, service.events
	service.mu.Unlock()
	if strings.Join(events, " ") != "order.* payment.completed" {
		t.Errorf("subscribed to %q, want both events", events)
	}
	body := `{"type":"order.created","data":{"object":{"id":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f01"}}}`
	for _, want := range []int{204, 204} {
		if got := deliver(t, target, "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f02", body); got != want {
			t.Errorf("delivery to %s: got %d, want %d", target, got, want)
		}
	}
	text := out.await(t, "repeat")
	for _, want := range []string{
		`,"type":"order.created","webhookId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f02","objectId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f01",`,
		`"outcome":"verified","payload":` + body + "}\n", `"outcome":"verified  repeat",`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("output: got %q, want it to hold %q", text, want)
		}
	}

	stop()
	if err := <-ended; err != nil {
		t.Errorf("listen ended with %v", err)
	}
	service.mu.Lock()
	defer service.mu.Unlock()
	query := "?applicationId=0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f41 Bearer token"
	want := []string{
		"GET /developers/webhooks/endpoints?applicationId=0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f41&limit=100 Bearer token",
		"POST /developers/webhooks/endpoints" + query,
		"DELETE /developers/webhooks/endpoints/0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f42" + query,
	}
	if strings.Join(service.calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls of the service: got %q, want %q", service.calls, want)
	}
}

func TestListenRefusesWhatIsNotSignedByTheSecret(t *testing.T) {
	t.Parallel()
	c := &listenCommand{addr: "127.0.0.1:0", path: "/", secrets: []string{"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}}
	ctx, stop := context.WithCancel(t.Context())
	out, errOut := newLines(), newLines()
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, out, errOut) }()
	_, rest, _ := strings.Cut(errOut.await(t, "\n"), "listening on ")
	rest, _, _ = strings.Cut(rest, "\n")
	if got := deliver(t, strings.TrimSpace(rest), "a", "{}"); got != http.StatusUnauthorized {
		t.Errorf("got %d, want 401", got)
	}
	out.await(t, "invalid: no signature matches the secret")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("listen ended with %v", err)
	}
}

func TestListenSaysWhyItCannotSubscribe(t *testing.T) {
	t.Parallel()
	service, data := newService(t)
	service.refuses = true
	_, stderr, err := runCommand(t.Context(), "listen", "--addr", "127.0.0.1:0", "--data", data, "--subscribe", "order.*")
	if err == nil || !strings.Contains(stderr, "the service answered 401 token_expired: the token has expired") {
		t.Errorf("got %q, want what the service says", stderr)
	}
}

func TestListenChecksItsFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--fail-rate", "1.5"}, "--fail-rate 1.5: must be between 0 and 1"},
		{[]string{"--path", "hooks"}, "--path hooks: must begin with /"},
		{[]string{"--secret", "whsec_"}, "--secret: must be whsec_ and base64"},
		{[]string{"--secret", "abc"}, "--secret: must be whsec_ and base64"},
		{[]string{"--forward-to", "localhost:80"}, "--forward-to localhost:80: must be a URL"},
		{[]string{"--secret", testSecret, "--subscribe", "*"}, "leave --secret out"},
		{[]string{"--addr", "nowhere"}, "--addr nowhere: must be host:port"},
	} {
		_, stderr, err := runCommand(t.Context(), append([]string{"listen"}, c.args...)...)
		if err == nil || !strings.Contains(stderr, c.want) {
			t.Errorf("listen %q: got %q, want %q", c.args, stderr, c.want)
		}
	}
}

func TestListenDeletesOnlyWhatAKilledOneLeftAtItsURL(t *testing.T) {
	t.Parallel()
	service, data := newService(t)
	service.left = `{"id":"a","url":"http://shop.test/","description":"commerce listen"},` +
		`{"id":"b","url":"http://shop.test/","description":"ours"},{"id":"c","url":"http://other.test/","description":"commerce listen"}`
	_, errOut, end := background(t, "listen", "--addr", "127.0.0.1:0", "--data", data, "--subscribe", "order.*", "--url", "http://shop.test/")
	if text := errOut.await(t, "commerce trigger order.created"); !strings.Contains(text, "deleted the endpoint a that a killed listen left\n") {
		t.Errorf("got %q, want that it deleted one", text)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	service.mu.Lock()
	defer service.mu.Unlock()
	deleted := 0
	for _, call := range service.calls {
		if strings.HasPrefix(call, "DELETE") {
			deleted++
		}
	}
	if deleted != 2 { // a and, at its end, its own
		t.Errorf("calls: got %q, want 2 deletions", service.calls)
	}
}
