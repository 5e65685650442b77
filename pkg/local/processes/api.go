package processes

import (
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
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process is gone, and its end fails the invocation
	}
	if len(answer) > MaxPayload {
		n.answer(w, nil, &FunctionError{
			Type: "Function.ResponseSizeTooLarge", Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxPayload),
		})
		return
	}
	n.answer(w, answer, nil)
}

func (n *instance) serveError(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	failure := &FunctionError{}
	if json.Unmarshal(text, failure) != nil {
		failure.Message = string(text)
	}
	if failure.Type == "" {
		failure.Type = r.Header.Get("Lambda-Runtime-Function-Error-Type")
	}
	n.answer(w, nil, failure)
}

// answer takes the outcome of the process's invocation, whose id a Go function does not mistake.
func (n *instance) answer(w http.ResponseWriter, answer []byte, failure error) {
	n.settle(outcome{answer, failure})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`) // nobody is left to be told
}
