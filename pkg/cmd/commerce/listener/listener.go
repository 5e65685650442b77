package listener

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// maxBody is well above the largest payload of the service.
	maxBody = 1 << 20
	// keptIDs bounds the memory of a listener that runs for long.
	keptIDs = 100_000
)

// Config tells a listener how to behave; the zero value answers everything
// with success, on every path, and verifies nothing.
type Config struct {
	// Path is the only one that takes webhooks; empty takes them on all.
	Path string
	// ForwardTo is a URL that gets each good webhook with its headers, and whose
	// answer decides about the listener's; "" forwards nothing.
	ForwardTo string
	// OnEvent is called for each webhook, one at a time, before its answer.
	OnEvent func(Event)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Listener receives webhooks. Its methods may be called at any time.
type Listener struct {
	cfg Config

	mu      sync.Mutex
	secrets []*standardwebhooks.Webhook
	seen    map[string]bool
	order   []string // ids of seen, oldest first
}

// New makes a listener that verifies by any of the secrets; with none it
// verifies nothing.
func New(secrets []string, cfg Config) (*Listener, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Listener{cfg: cfg, seen: map[string]bool{}}
	return l, l.SetSecrets(secrets...)
}

// SetSecrets replaces the secrets, as when an endpoint's was rotated.
func (l *Listener) SetSecrets(secrets ...string) error {
	verifiers := make([]*standardwebhooks.Webhook, len(secrets))
	for i, secret := range secrets {
		var err error
		if verifiers[i], err = readSecret(secret); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets = verifiers
	return nil
}

// ServeHTTP answers 204 to a good webhook, and 401 to a wrong signature or time. Of
// a webhook that is forwarded it answers any status but a 2xx as it came, and 502
// when none came.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.cfg.Path != "" && r.URL.Path != l.cfg.Path {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are sent by POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read or is larger than 1 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	switch event := l.receive(r.Context(), r.Header, body); {
	case event.Unreached != nil:
		http.Error(w, "the webhook could not be forwarded", http.StatusBadGateway)
	case event.Answer != 0 && !event.good():
		w.WriteHeader(event.Answer)
	case event.Reason != nil:
		http.Error(w, event.Reason.Error(), http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (l *Listener) receive(ctx context.Context, header http.Header, body []byte) Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	event := l.judge(header, body)
	if l.cfg.ForwardTo != "" && event.Reason == nil {
		l.mu.Unlock() // others come meanwhile
		event.Answer, event.Unreached = Forward(ctx, l.cfg.ForwardTo, header, body)
		l.mu.Lock()
	}
	if event.good() {
		l.remember(event.ID)
	}
	if l.cfg.OnEvent != nil {
		l.cfg.OnEvent(event)
	}
	return event
}

// judge verifies a webhook.
func (l *Listener) judge(header http.Header, body []byte) Event {
	event := Event{
		At: l.cfg.Now(), ID: header.Get(standardwebhooks.HeaderWebhookID), Header: header.Clone(), Body: body,
	}
	event.describe()
	event.Signature, event.Reason = l.verify(header, body, event.At)
	event.Repeat = event.Reason == nil && l.seen[event.ID]
	return event
}

// verify checks the time here and not by the library, which knows no clock but
// the system's.
func (l *Listener) verify(header http.Header, body []byte, now time.Time) (Signature, error) {
	if len(l.secrets) == 0 {
		return Unverified, nil
	}
	if err := checkTime(header, now); err != nil {
		return Invalid, err
	}
	for _, secret := range l.secrets {
		if secret.VerifyIgnoringTimestamp(body, header) == nil {
			return Verified, nil
		}
	}
	return Invalid, ErrSignature
}

// remember keeps the id of an event that was answered with success: one that
// failed will be sent again and is not a repeat then.
func (l *Listener) remember(id string) {
	if id == "" || l.seen[id] {
		return
	}
	if len(l.order) == keptIDs {
		delete(l.seen, l.order[0])
		l.order = l.order[1:]
	}
	l.seen[id] = true
	l.order = append(l.order, id)
}
