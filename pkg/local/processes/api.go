package processes

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// handler is the Runtime API of one instance. There is no Lambda-Runtime-Client-Context and no
// Lambda-Runtime-Cognito-Identity: Lambda passes them on from mobile SDKs only.
func (n *instance) handler() http.Handler {
	const root = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"invocation/next", n.serveNext)
	mux.HandleFunc("POST "+root+"invocation/{id}/response", n.serveResponse)
	mux.HandleFunc("POST "+root+"invocation/{id}/error", n.serveError)
	mux.HandleFunc("POST "+root+"init/error", n.serveInitError)
	return mux
}

// serveNext ends the previous invocation and waits for another.
func (n *instance) serveNext(w http.ResponseWriter, r *http.Request) {
	n.pool.mu.Lock()
	n.rest()
	i := n.pool.next(n)
	n.pool.mu.Unlock()
	if i == nil {
		select {
		case i = <-n.work:
		case <-r.Context().Done():
			n.hungUp()
			return
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(i.event)))
	header.Set("Lambda-Runtime-Aws-Request-Id", i.id)
	header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
	header.Set("Lambda-Runtime-Invoked-Function-Arn", fmt.Sprintf("arn:aws:lambda:%s:000000000000:function:%s", n.pool.fleet.cfg.Region, n.pool.function.Name))
	header.Set("Lambda-Runtime-Trace-Id", traceID(time.Now()))
	_, _ = w.Write(i.event) // a process that is gone fails its invocation
}

// traceID is the header of a trace that is not sampled.
func traceID(now time.Time) string {
	var random [20]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", now.Unix(), hex.EncodeToString(random[:12]), hex.EncodeToString(random[12:]))
}

func (n *instance) serveResponse(w http.ResponseWriter, r *http.Request) {
	answer, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
	if err == nil {
		n.answer(w, r, answer, nil)
		return
	}
	tooLarge := (*http.MaxBytesError)(nil)
	if !errors.As(err, &tooLarge) {
		return // the process is gone, and its end fails the invocation
	}
	failure := &FunctionError{Type: "Function.ResponseSizeTooLarge", Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxPayload)}
	if n.settle(r.PathValue("id"), nil, failure) == nil {
		say(w, http.StatusRequestEntityTooLarge, FunctionError{Type: "RequestEntityTooLarge", Message: failure.Message})
	}
}

func (n *instance) serveError(w http.ResponseWriter, r *http.Request) {
	if failure, err := reported(w, r); err == nil {
		n.answer(w, r, nil, failure)
	}
}

func (n *instance) answer(w http.ResponseWriter, r *http.Request, answer []byte, failure error) {
	if refused := n.settle(r.PathValue("id"), answer, failure); refused != nil {
		say(w, http.StatusBadRequest, *refused)
		return
	}
	say(w, http.StatusAccepted, status{"OK"})
}

// settle takes the outcome of the current invocation. It refuses another ID or a second outcome.
func (n *instance) settle(id string, answer []byte, failure error) (refused *FunctionError) {
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if n.current == nil || !n.begun || n.outcome != nil || n.current.id != id {
		return &FunctionError{Type: "InvalidRequestID", Message: "Invalid request ID"}
	}
	n.outcome = &outcome{answer, failure}
	return nil
}

// serveInitError keeps the error until the process ends, which Lambda expects it to do.
func (n *instance) serveInitError(w http.ResponseWriter, r *http.Request) {
	failure, err := reported(w, r)
	if err != nil {
		return
	}
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if n.ready {
		say(w, http.StatusForbidden, FunctionError{Type: "InvalidStateTransition", Message: "State transition is not allowed"})
		return
	}
	n.failed = failure
	say(w, http.StatusAccepted, status{"OK"})
}

// reported reads the error that a function reports. It fails when the process ends meanwhile; that fails the invocation.
func reported(w http.ResponseWriter, r *http.Request) (*FunctionError, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
	if err != nil {
		return nil, err
	}
	failure := &FunctionError{}
	if json.Unmarshal(text, failure) != nil {
		failure.Message = string(text)
	}
	if failure.Type == "" {
		failure.Type = r.Header.Get("Lambda-Runtime-Function-Error-Type")
	}
	return failure, nil
}

// status is the API's answer to what it accepts.
type status struct {
	Status string `json:"status"`
}

func say(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.MarshalWrite(w, body) // nobody is left to be told
}
