package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/testkit/leaks"
)

// service is a running service as one organization sees it.
type service struct {
	*runner.Info
	data string
}

// lockedBuffer is an output that may be read while it is written. Its buffer
// is not embedded: io.Copy would find ReadFrom and go past the lock.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// shared is the service that all tests use which do not end it or change how
// it runs. Each has an organization of its own there.
var shared sharedService

// watched looks for secrets in what all services of the tests answer and log.
var watched = leaks.New()

// sharedService runs "commerce run" in this process from the first use on.
type sharedService struct {
	start sync.Once
	info  *runner.Info
	data  string
	err   error

	log   lockedBuffer
	end   context.CancelFunc
	ended chan error
}

func (s *sharedService) run() error {
	data, err := os.MkdirTemp("", "commerce-")
	if err != nil {
		return err
	}
	if err := shareBinary(context.Background(), data); err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	s.data, s.end, s.ended = data, end, make(chan error, 1)
	go func() {
		root := newRootCommand()
		root.SetArgs([]string{"run", "--addr", "127.0.0.1:0", "--data", data, "--template", "../../../template.yaml", "--no-demo", "--log-level", "info"})
		root.SetOut(&s.log) // the greeting, which shows secrets
		root.SetErr(watched)
		s.ended <- root.ExecuteContext(ctx)
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s.info, err = runner.ReadInfo(data); err == nil {
			return watchKeys(data)
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("it did not start: %w\n%s%s", err, &s.log, watched.Log())
		default:
		}
	}
	return fmt.Errorf("it did not start within a minute\n%s", &s.log)
}

// watchKeys watches the keys of a service, which its data folder has.
func watchKeys(data string) error {
	text, err := os.ReadFile(filepath.Join(data, "state.json"))
	if err != nil {
		return err
	}
	var keys struct{ ServiceKey, SigningSecret string }
	if err := json.Unmarshal(text, &keys, json.MatchCaseInsensitiveNames(true)); err != nil {
		return err
	}
	if keys.ServiceKey == "" || keys.SigningSecret == "" {
		return errors.New("state.json has no keys")
	}
	watched.Made(keys.ServiceKey, keys.SigningSecret)
	return nil
}

// stop ends the service, if there is one, and removes what it kept.
func (s *sharedService) stop() error {
	if s.end == nil {
		return nil
	}
	s.end()
	select {
	case err := <-s.ended:
		return errors.Join(err, os.RemoveAll(s.data))
	case <-time.After(patience):
		return fmt.Errorf("it did not end within %s\n%s", patience, &s.log)
	}
}

// newOrganization returns the shared service as seen by a new organization,
// which has an application with a key and a generous rate limit.
func newOrganization(t *testing.T) *service {
	t.Helper()
	shared.start.Do(func() { shared.err = shared.run() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return (&service{Info: shared.info, data: shared.data}).newOrganization(t)
}

func (s *service) newOrganization(t *testing.T) *service {
	t.Helper()
	info := *s.Info
	own := &service{Info: &info, data: s.data}
	own.OrganizationID, own.SiteID = value.NewID().String(), value.NewID().String()
	lines := strings.Fields(own.commerce(t, "token", "--organization", own.OrganizationID))
	own.JWT = lines[len(lines)-1]
	watched.Made(own.JWT)
	own.ApplicationID = own.create(t, "/developers/applications", `{"name":"test"}`)["id"].(string)
	own.APIKey = own.create(t, "/developers/applications/"+own.ApplicationID+"/api-keys", `{"name":"test"}`)["key"].(string)
	own.commerce(t, "application", "set", own.ApplicationID, "--organization", own.OrganizationID, "--rate-limit", "1000000")
	return own
}

// shareBinary lets every data folder use one installation of the table
// server.
func shareBinary(ctx context.Context, data string) error {
	installed, err := tableserver.CacheDir()
	if err != nil {
		return err
	}
	if _, err := tableserver.Install(ctx, installed); err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(installed, filepath.Join(data, "bin")); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// get reads a path with the service's API key and fails unless it is 200. A
// service that is busy is asked again, as it asks for.
func (s *service) get(t *testing.T, path string, into any) {
	t.Helper()
	s.read(t, path, map[string]string{"X-API-Key": s.APIKey}, into)
}

// history reads a path with the service's user token likewise.
func (s *service) history(t *testing.T, path string, into any) {
	t.Helper()
	s.read(t, path, map[string]string{"Authorization": "Bearer " + s.JWT}, into)
}

func (s *service) read(t *testing.T, path string, header map[string]string, into any) {
	t.Helper()
	resp, body := s.do(t, http.MethodGet, path, "", header)
	for tries := 0; resp.StatusCode == http.StatusServiceUnavailable && tries < 20; tries++ {
		time.Sleep(500 * time.Millisecond)
		resp, body = s.do(t, http.MethodGet, path, "", header)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: got %d %s, want 200", path, resp.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

func (s *service) do(t *testing.T, method, path, body string, header map[string]string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.BaseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range header {
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	watched.Answered(req, resp.Header, string(answer))
	return resp, answer
}

// user makes a call with the service's user token.
func (s *service) user(t *testing.T, method, path, body string) (*http.Response, []byte) {
	t.Helper()
	return s.do(t, method, path, body, map[string]string{"Authorization": "Bearer " + s.JWT})
}

// create posts and returns what was created.
func (s *service) create(t *testing.T, path, body string) map[string]any {
	t.Helper()
	resp, answer := s.user(t, http.MethodPost, path, body)
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusAccepted {
		t.Fatalf("POST %s: got %d %s", path, resp.StatusCode, answer)
	}
	var created map[string]any
	if err := json.Unmarshal(answer, &created); err != nil {
		t.Fatal(err)
	}
	return created
}

type page struct {
	Data []map[string]any `json:"data"`
	Meta struct {
		Total int `json:"total"`
	} `json:"meta"`
}

// total is how many entries a list has.
func (s *service) total(t *testing.T, path string) int {
	t.Helper()
	var p page
	s.get(t, path, &p)
	return p.Meta.Total
}

// patience is how long a test waits for what is to happen, on a machine that
// may be busy with other things. How fast it happens is for benchmarks to say.
const patience = 5 * time.Minute

// await polls until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// commerce runs another command against the service.
func (s *service) commerce(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := runCommand(t.Context(), append(args, "--data", s.data)...)
	if err != nil {
		t.Fatalf("commerce %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
