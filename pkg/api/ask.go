package api

import (
	"bytes"
	"net/http"
	"net/url"
)

// Recorder keeps what a handler answers.
type Recorder struct {
	Status int // 0: it has not answered
	Body   bytes.Buffer
	header http.Header
}

// NewRecorder makes one of no answer.
func NewRecorder() *Recorder { return &Recorder{header: http.Header{}} }

// Header implements [http.ResponseWriter].
func (a *Recorder) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *Recorder) WriteHeader(status int) {
	if a.Status == 0 {
		a.Status = status
	}
}

func (a *Recorder) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.Body.Write(b)
}

// Ask has one of the operation's parts answer a GET of the same caller, with every
// check, and returns the body, or why there is none. The rate limits count both as one
// request: of the part they count only the units beyond those of the request.
func (r *Request) Ask(path string, query url.Values) ([]byte, error) {
	get := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: path, RawQuery: query.Encode()},
		Header: http.Header{siteHeader: r.Header.Values(siteHeader)},
	}
	answer := NewRecorder()
	x := &exchange{
		Server: &Server{router: r.op.parts, cfg: r.x.cfg}, w: answer, r: get.WithContext(r.Context()),
		caller: r.x.caller, admitted: r.x.admitted, weight: r.x.weight,
	}
	err := x.serve()
	return answer.Body.Bytes(), err
}
