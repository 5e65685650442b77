package processes

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// handler is the Runtime API of one instance, as far as the functions use it: without trace ids, reports of a failed
// initialization, and what Lambda passes on from mobile SDKs.
func (n *instance) handler() http.Handler {
	const root = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"invocation/next", n.serveNext)
	mux.HandleFunc("POST "+root+"invocation/{id}/response", n.serveResponse)
	mux.HandleFunc("POST "+root+"invocation/{id}/error", n.serveError)
	return mux
}

// serveNext ends the previous invocation and waits for another.
func (n *instance) serveNext(w http.ResponseWriter, r *http.Request) {
	ask := make(chan *invocation, 1)
	select {
	case n.asks <- ask:
	case <-r.Context().Done():
		return
	}
	var i *invocation
	select {
	case i = <-ask:
	case <-r.Context().Done():
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(i.event)))
	header.Set("Lambda-Runtime-Aws-Request-Id", i.id)
	header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
	header.Set("Lambda-Runtime-Invoked-Function-Arn", fmt.Sprintf("arn:aws:lambda:%s:000000000000:function:%s", n.pool.fleet.cfg.Region, n.pool.function.Name))
	_, _ = w.Write(i.event) // a process that is gone fails its invocation
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
