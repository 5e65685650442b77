package processes

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// newRuntime returns the Runtime API of an instance whose process the test is.
func newRuntime(t *testing.T) (*pool, string) {
	t.Helper()
	fleet := &Fleet{cfg: Config{Region: "us-east-1", Idle: time.Hour, Init: time.Hour}}
	fleet.closed, fleet.end = context.WithCancel(context.Background())
	p := newPool(fleet, Function{Name: "echo", Timeout: 5 * time.Second})
	n := newInstance(p)
	go func() {
		if i := n.idle(); i != nil {
			n.serve(i)
		}
	}()
	server := httptest.NewServer(n.handler())
	t.Cleanup(func() {
		fleet.end()
		server.Close()
	})
	return p, server.URL + "/2018-06-01/runtime/"
}

// call makes a request of a runtime's.
func call(t *testing.T, method, url, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Lambda-Runtime-Function-Error-Type", "Header.Type")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestTheRuntimeAPIIsLambdas(t *testing.T) {
	p, api := newRuntime(t)
	ended := make(chan outcome, 1)
	invoke := func() {
		go func() {
			answer, err := p.invoke(context.Background(), []byte(`{"a":1}`))
			ended <- outcome{answer, err}
		}()
	}
	next := func() string {
		t.Helper()
		resp, event := call(t, http.MethodGet, api+"invocation/next", "")
		if resp.StatusCode != http.StatusOK || event != `{"a":1}` || resp.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("next: got %d %s as %s", resp.StatusCode, event, resp.Header.Get("Content-Type"))
		}
		deadline, err := strconv.ParseInt(resp.Header.Get("Lambda-Runtime-Deadline-Ms"), 10, 64)
		if left := time.Until(time.UnixMilli(deadline)); err != nil || left < 4*time.Second || left > 5*time.Second {
			t.Errorf("deadline: got %d, in %s, want in 5 s", deadline, left)
		}
		if _, ok := resp.Header["Lambda-Runtime-Client-Context"]; ok {
			t.Error("a client context that nobody gave")
		}
		return resp.Header.Get("Lambda-Runtime-Aws-Request-Id")
	}
	answered := func(step, method, path, body string, status int, want string) {
		t.Helper()
		if resp, got := call(t, method, api+path, body); resp.StatusCode != status || !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s, want %d with %s", step, resp.StatusCode, got, status, want)
		}
	}
	answered("an answer to nothing", http.MethodPost, "invocation/none/response", "{}", http.StatusBadRequest, "InvalidRequestID")
	answered("an unknown path", http.MethodGet, "invocation/none", "", http.StatusNotFound, "")

	invoke()
	id := next()
	answered("an answer to another", http.MethodPost, "invocation/none/response", "{}", http.StatusBadRequest, "InvalidRequestID")
	answered("an answer", http.MethodPost, "invocation/"+id+"/response", `"done"`, http.StatusAccepted, `{"status":"OK"}`)
	answered("a second answer", http.MethodPost, "invocation/"+id+"/response", `"again"`, http.StatusBadRequest, "InvalidRequestID")
	answered("a failure after it", http.MethodPost, "invocation/"+id+"/error", `{}`, http.StatusBadRequest, "InvalidRequestID")
	select {
	case got := <-ended:
		t.Fatalf("got %s, %v before the runtime asked for more", got.answer, got.err)
	default:
	}

	asked := make(chan string, 1)
	go func() { asked <- next() }()
	if got := <-ended; string(got.answer) != `"done"` || got.err != nil {
		t.Errorf("the invocation: got %s, %v; want the first answer", got.answer, got.err)
	}
	invoke()
	second := <-asked
	if second == id {
		t.Errorf("two invocations have the request id %s", id)
	}
	answered("a failure that is no JSON", http.MethodPost, "invocation/"+second+"/error", "broken", http.StatusAccepted, "OK")
	go func() { asked <- next() }()
	if got := <-ended; got.err == nil || !strings.HasSuffix(got.err.Error(), "Header.Type: broken") {
		t.Errorf("the invocation: got %v, want what was reported", got.err)
	}

	invoke()
	<-asked
	go func() { asked <- next() }()
	if got := <-ended; got.err == nil || !strings.Contains(got.err.Error(), "asked for work before it answered") {
		t.Errorf("an invocation without an answer: got %v", got.err)
	}
	invoke()
	<-asked // the runtime goes on
}
