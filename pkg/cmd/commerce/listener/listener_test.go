package listener_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var moment = time.Date(2026, 11, 21, 6, 35, 41, 242_000_000, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// opened is a listener with the events that it told of.
type opened struct {
	*listener.Listener
	events []listener.Event
}

func open(t *testing.T, cfg listener.Config, secrets ...string) *opened {
	t.Helper()
	l := &opened{}
	cfg.OnEvent = func(e listener.Event) { l.events = append(l.events, e) }
	var err error
	if l.Listener, err = listener.New(secrets, cfg); err != nil {
		t.Fatalf("New(%q): %v", secrets, err)
	}
	return l
}

func post(h http.Handler, id, timestamp, signature string, body []byte) int {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	for name, text := range map[string]string{"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature} {
		if text != "" {
			r.Header.Set(name, text)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func sign(t *testing.T, key, id string, when time.Time, body []byte) string {
	t.Helper()
	webhook, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := webhook.Sign(id, when, body)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// send posts a webhook that is signed right at the moment.
func send(t *testing.T, h http.Handler, id string, body string) int {
	t.Helper()
	return post(h, id, strconv.FormatInt(moment.Unix(), 10), sign(t, secret, id, moment, []byte(body)), []byte(body))
}

func TestListenerJudgesTheVectorsOfTheSpecification(t *testing.T) {
	text, err := os.ReadFile("testdata/standard-webhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Secret, ID, Timestamp, Body, Signature string
		Accept                                       bool
	}
	if err := json.Unmarshal(text, &vectors, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		seconds, err := strconv.ParseInt(v.Timestamp, 10, 64)
		if err != nil {
			seconds = 1614265330
		}
		l := open(t, listener.Config{Now: at(time.Unix(seconds, 0))}, v.Secret)
		want := http.StatusUnauthorized
		if v.Accept {
			want = http.StatusNoContent
		}
		if got := post(l, v.ID, v.Timestamp, v.Signature, []byte(v.Body)); got != want {
			t.Errorf("%s: got %d, want %d (%v)", v.Name, got, want, l.events[0].Reason)
		}
	}
}

func TestListenerTakesTimesWithinFiveMinutes(t *testing.T) {
	for _, c := range []struct {
		away time.Duration
		want int
	}{
		{0, 204}, {-300 * time.Second, 204}, {300 * time.Second, 204}, {-301 * time.Second, 401}, {301 * time.Second, 401},
	} {
		t.Run(fmt.Sprint(c.away), func(t *testing.T) {
			now := moment.Truncate(time.Second)
			l := open(t, listener.Config{Now: at(now)}, secret)
			sent := now.Add(c.away)
			got := post(l, "a", strconv.FormatInt(sent.Unix(), 10), sign(t, secret, "a", sent, []byte("{}")), []byte("{}"))
			if got != c.want {
				t.Errorf("sent %s away: got %d, want %d", c.away, got, c.want)
			}
		})
	}
}

func TestListenerRefusesTimestampsThatAreNoWholeSeconds(t *testing.T) {
	for _, timestamp := range []string{"1614265330.5", "-1614265330", "+1614265330", "yesterday", " 1614265330", "1e9", "99999999999999999999"} {
		t.Run(timestamp, func(t *testing.T) {
			l := open(t, listener.Config{Now: at(time.Unix(1614265330, 0))}, secret)
			if got := post(l, "a", timestamp, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", []byte("{}")); got != 401 {
				t.Errorf("timestamp %q: got %d, want 401", timestamp, got)
			}
			if got := l.events[0].Reason; got != listener.ErrTimestamp {
				t.Errorf("timestamp %q: got %v, want %v", timestamp, got, listener.ErrTimestamp)
			}
		})
	}
}

func TestListenerRefusesSecretsThatAnybodyCanGuess(t *testing.T) {
	for _, bad := range []string{"", "whsec_", "whsec_====", "whsec_not base64!"} {
		t.Run(bad, func(t *testing.T) {
			if _, err := listener.New([]string{bad}, listener.Config{}); err == nil {
				t.Errorf("secret %q: got no error, want one", bad)
			}
		})
	}
}

func TestListenerVerifiesByAnyOfItsSecrets(t *testing.T) {
	other := "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	l := open(t, listener.Config{Now: at(moment)}, other, secret)
	if got := send(t, l, "a", `{}`); got != 204 {
		t.Errorf("got %d, want 204", got)
	}
	if err := l.SetSecrets(other); err != nil {
		t.Fatal(err)
	}
	if got := send(t, l, "b", `{}`); got != 401 {
		t.Errorf("after the rotation: got %d, want 401", got)
	}
}

func TestListenerMarksRepeats(t *testing.T) {
	l := open(t, listener.Config{Now: at(moment)}, secret)
	for i, want := range []bool{false, true, false, true} {
		id := []string{"a", "a", "b", "a"}[i]
		send(t, l, id, `{"type":"order.created","data":{"object":{"id":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"}}}`)
		event := l.events[i]
		if event.Repeat != want {
			t.Errorf("webhook %d, id %s: repeat %v, want %v", i, id, event.Repeat, want)
		}
		if event.Type != "order.created" || event.ObjectID != "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00" {
			t.Errorf("webhook %d: got type %q and object %q", i, event.Type, event.ObjectID)
		}
	}
}

func TestListenerWithoutASecretTakesEverything(t *testing.T) {
	l := open(t, listener.Config{Now: at(moment)})
	if got := post(l, "", "", "", nil); got != 204 {
		t.Errorf("got %d, want 204", got)
	}
	if got := l.events[0].Signature; got != listener.Unverified {
		t.Errorf("got %s, want %s", got, listener.Unverified)
	}
}

func TestListenerTakesPostOnItsPathOnly(t *testing.T) {
	l := open(t, listener.Config{Path: "/hooks"})
	for _, c := range []struct {
		method, path string
		want         int
	}{{"POST", "/hooks", 204}, {"POST", "/", 404}, {"GET", "/hooks", 405}, {"PUT", "/hooks", 405}} {
		t.Run(fmt.Sprintf("%v_%v", c.method, c.path), func(t *testing.T) {
			w := httptest.NewRecorder()
			l.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
			if w.Code != c.want {
				t.Errorf("%s %s: got %d, want %d", c.method, c.path, w.Code, c.want)
			}
		})
	}
	if got := len(l.events); got != 1 {
		t.Errorf("got %d events, want 1", got)
	}
}

func TestListenerRefusesABodyOfMoreThanAMebibyte(t *testing.T) {
	l := open(t, listener.Config{})
	if got := post(l, "a", "", "", make([]byte, 1<<20+1)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want 413", got)
	}
}
