package api

import "net/http"

// Health is the answer of the health check.
type Health struct {
	Status string `json:"status" doc:"Always ok: a service in trouble answers an error or nothing."`
}

// HealthCheck returns the operation that checks whether the service answers.
func HealthCheck() Operation {
	return Operation{
		ID: "getHealth", Method: http.MethodGet, Path: "/health", Tag: "About",
		Summary: "Check that the service answers", Result: Health{},
		Handle: func(*Request) (*Response, error) {
			return &Response{JSON: Health{Status: "ok"}, Header: http.Header{"Cache-Control": {"no-store"}}}, nil
		},
	}
}
