package servicetest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-json-experiment/json"
)

// SecretsManager answers GetSecretValue as Secrets Manager does, for secrets
// that a test sets.
type SecretsManager struct {
	*httptest.Server
	now func() time.Time

	mu      sync.Mutex
	secrets map[string]*secretVersions
	away    bool
}

type secretVersions struct {
	current, previous string
	created, before   time.Time
}

// NewSecretsManager starts a server without secrets. now says when a version
// was made.
func NewSecretsManager(t testing.TB, now func() time.Time) *SecretsManager {
	m := &SecretsManager{now: now, secrets: map[string]*secretVersions{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	return m
}

// Put gives the secret a new value: the one before becomes its previous.
func (m *SecretsManager) Put(id, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := &secretVersions{current: text, created: m.now()}
	if old := m.secrets[id]; old != nil {
		next.previous, next.before = old.current, old.created
	}
	m.secrets[id] = next
}

// Away says whether requests fail.
func (m *SecretsManager) Away(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// Config is that of clients of the server.
func (m *SecretsManager) Config() aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(m.URL), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

func (m *SecretsManager) answer(w http.ResponseWriter, r *http.Request) {
	var request struct {
		SecretID     string `json:"SecretId"`
		VersionStage string
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	secret := m.secrets[request.SecretID]
	text, created := "", time.Time{}
	if secret != nil {
		text, created = secret.current, secret.created
		if request.VersionStage == "AWSPREVIOUS" {
			text, created = secret.previous, secret.before
		}
	}
	switch {
	case m.away:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"__type":"InternalServiceError"}`)
	case err != nil || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || text == "":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ResourceNotFoundException"}`)
	default:
		answer, _ := json.Marshal(map[string]any{"SecretString": text, "CreatedDate": created.Unix()})
		_, _ = w.Write(answer)
	}
}
