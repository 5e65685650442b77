package servicetest

import (
	"net/http"
	"net/http/httptest"
	"strings"
)

// Answer is what a server answered to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Ask makes a request with headers, given as names and values. The answer is
// searched for secrets.
func (s *Service) Ask(server http.Handler, method, path, body string, headers ...string) Answer {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Leaks.Handler(server).ServeHTTP(w, r)
	return Answer{w.Code, w.Header(), w.Body.String()}
}

// AskJSON is Ask with a body of JSON unless it is empty.
func (s *Service) AskJSON(server http.Handler, method, path, body string, headers ...string) Answer {
	if body != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return s.Ask(server, method, path, body, headers...)
}
