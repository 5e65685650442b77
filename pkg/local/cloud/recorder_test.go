//go:build cloud

package cloud_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
)

// recorder passes the functions' calls on to the emulator and keeps which actions each function took, and what it was
// refused.
type recorder struct {
	server *httptest.Server

	mu      sync.Mutex
	actions map[string]map[string]bool // by function
	refused []string
}

func newRecorder(t *testing.T, emulator string) *recorder {
	t.Helper()
	target, err := url.Parse(emulator)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{actions: map[string]map[string]bool{}}
	r.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host // it is signed
			r.record(p.In, p.Out)
		},
		ModifyResponse: r.inspect,
		ErrorLog:       nil,
	})
	t.Cleanup(r.server.Close)
	return r
}

// caller is a function's name, as the SDK puts it into its User-Agent.
var caller = regexp.MustCompile(`\bapp/(\w+)`)

// record keeps the actions of a call, whose body it reads.
func (r *recorder) record(in, out *http.Request) {
	body, err := io.ReadAll(in.Body)
	out.Body = io.NopCloser(bytes.NewReader(body))
	match := caller.FindStringSubmatch(in.UserAgent())
	if err != nil || match == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.actions[match[1]] == nil {
		r.actions[match[1]] = map[string]bool{}
	}
	for _, action := range actions(in.Header.Get("X-Amz-Target"), body) {
		r.actions[match[1]][action] = true
	}
}

// inspect keeps what the emulator refuses.
func (r *recorder) inspect(resp *http.Response) error {
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusForbidden {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte("AccessDenied")) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused = append(r.refused, fmt.Sprintf("%s: %s", resp.Request.UserAgent(), body))
	}
	return nil
}

// actions returns the actions of IAM that a call needs in AWS.
func actions(target string, body []byte) []string {
	service, operation, _ := strings.Cut(target, ".")
	switch {
	case operation == "TransactWriteItems":
		return transactionActions(body)
	case operation == "BatchExecuteStatement":
		if bytes.Contains(body, []byte("UPDATE ")) {
			return []string{"dynamodb:PartiQLUpdate"}
		}
		return []string{"dynamodb:PartiQLInsert"}
	case strings.HasPrefix(service, "DynamoDB"):
		return []string{"dynamodb:" + operation}
	case service == "AmazonSQS":
		return []string{"sqs:" + strings.TrimSuffix(operation, "Batch")}
	default:
		return []string{service + ":" + operation}
	}
}

func transactionActions(body []byte) []string {
	var request struct {
		TransactItems []map[string]any
	}
	if json.Unmarshal(body, &request) != nil {
		return nil
	}
	names := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
	var all []string
	for _, item := range request.TransactItems {
		for name := range item {
			all = append(all, "dynamodb:"+names[name])
		}
	}
	return all
}

// taken are the actions that a function has taken.
func (r *recorder) taken(function string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.actions[function]))
}

// refusals are the calls that the emulator refused the functions.
func (r *recorder) refusals() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}
