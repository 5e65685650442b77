package main

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/webhook"
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
func deliver(t *testing.T, target, secret, id, body string) int {
	t.Helper()
	key, err := webhook.SecretKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	status, err := listener.Forward(t.Context(), target, webhook.Headers(value.MustID(id), time.Now(), []byte(body), key), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestListenPrintsAWebhookInALineOfJSON(t *testing.T) {
	t.Parallel()
	out, errOut, end := background(t, "listen", "--addr", "127.0.0.1:0", "--path", "/hooks", "--secret", testSecret, "--json")
	_, target, _ := strings.Cut(errOut.await(t, "\n"), "listening on ")
	target, _, _ = strings.Cut(target, "\n")
	const id, object = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f02", "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f01"
	body := `{"type":"order.created","data":{"object":{"id":"` + object + `"}}}`
	for range 2 {
		if got := deliver(t, target, testSecret, id, body); got != http.StatusNoContent {
			t.Errorf("got %d, want 204", got)
		}
	}
	if got := deliver(t, target, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", id, body); got != http.StatusUnauthorized {
		t.Errorf("signed by another secret: got %d, want 401", got)
	}
	text := out.await(t, "invalid: no signature matches the secret")
	for _, want := range []string{
		`,"type":"order.created","webhookId":"` + id + `","objectId":"` + object + `",`,
		`"outcome":"verified","payload":` + body + "}\n", `"outcome":"verified  repeat",`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("output: got %q, want it to hold %q", text, want)
		}
	}
	if err := end(); err != nil {
		t.Errorf("listen ended with %v", err)
	}
}

func TestALineIsHarmlessForATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	at := time.Date(2026, 11, 21, 6, 35, 41, 242_000_000, time.UTC)
	printEvent(&out, false, &listener.Event{At: at, ID: "a\x1b[2J\nb", Type: "order.created", Signature: listener.Verified, Repeat: true})
	want := "2026-11-21T06:35:41.242Z  order.created         " + `a\u001b[2J\u000ab                     -                                     verified  repeat` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestListenChecksItsFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--path", "hooks"}, "--path hooks: must begin with /"},
		{[]string{"--secret", "whsec_"}, "--secret: must be whsec_ and base64"},
		{[]string{"--secret", "abc"}, "--secret: must be whsec_ and base64"},
		{[]string{"--secret", testSecret, "--subscribe", "*"}, "leave --secret out"},
		{[]string{"--remote", "http://127.0.0.1:9", "--subscribe", "order.*"}, "none of the others can be"},
		{[]string{"--remote", "http://127.0.0.1:9", "--secret", testSecret, "--secret", testSecret}, "one --secret"},
	} {
		_, stderr, err := runCommand(t.Context(), append([]string{"listen"}, c.args...)...)
		if err == nil || !strings.Contains(stderr, c.want) {
			t.Errorf("listen %q: got %q, want %q", c.args, stderr, c.want)
		}
	}
}
