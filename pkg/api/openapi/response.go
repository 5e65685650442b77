package openapi

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/api"
)

// responses documents the success, and every error that the declaration
// implies or names.
func (b *builder) responses(op *api.Operation) map[string]*huma.Response {
	success := &huma.Response{Description: outcome(op), Headers: b.headers(successHeaders(op)...)}
	if op.Result != nil {
		content := &huma.MediaType{Schema: b.schema(op.Result), Example: shown(b.examples[op.ID].Response)}
		success.Content = map[string]*huma.MediaType{cmp.Or(op.MediaType, api.JSON): content}
		if op.Rows {
			rows := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
			success.Content[api.NDJSON], success.Content[api.CSV] = rows, rows
		}
	}
	out := map[string]*huma.Response{strconv.Itoa(op.Status): success}
	for _, status := range otherStatuses(op) {
		out[strconv.Itoa(status)] = b.shared(op, status)
	}
	return out
}

// outcome says what a success means.
func outcome(op *api.Operation) string {
	switch {
	case op.List != nil:
		return "A page of the list."
	case op.Status == http.StatusCreated:
		return "Created; the answer shows it."
	case op.Status == http.StatusAccepted:
		return "Accepted; the answer shows it as it is now, and Location is where to follow it."
	case op.Result == nil:
		return "Done; there is nothing to show."
	case op.Method == http.MethodGet:
		return "The current state."
	}
	return "Done; the answer shows it as it is now."
}

// otherStatuses are those of an operation beside its success. A path that names
// something can name something that is not there.
func otherStatuses(op *api.Operation) []int {
	statuses := append([]int{http.StatusBadRequest, http.StatusTooManyRequests, http.StatusInternalServerError}, op.Errors...)
	if strings.Contains(op.Path, "{") {
		statuses = append(statuses, http.StatusNotFound)
	}
	if op.MediaType == "" {
		statuses = append(statuses, http.StatusNotAcceptable)
	}
	if op.Access != api.Public {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
	}
	switch op.Method {
	case http.MethodGet:
		statuses = append(statuses, http.StatusNotModified)
	case http.MethodPatch, http.MethodDelete:
		statuses = append(statuses, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	default:
		statuses = append(statuses, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if op.TakesIdempotencyKey() {
		statuses = append(statuses, http.StatusConflict, http.StatusUnprocessableEntity)
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// meaning says what every status beside a success means, in whatever operation.
func meaning(status int) string {
	return map[int]string{
		http.StatusNotModified:           "A tag in If-None-Match is current: the answer would be the one that the client has.",
		http.StatusBadRequest:            "The request is not valid; details names the faults, each with its field.",
		http.StatusUnauthorized:          "The credentials are missing or not accepted; code says why.",
		http.StatusForbidden:             "The credential is valid and may not do this: it lacks the scope, or does not cover the site.",
		http.StatusNotFound:              "It does not exist, or belongs to another organization.",
		http.StatusNotAcceptable:         "Accept excludes every media type of the answer.",
		http.StatusConflict:              "The state does not allow it, a request with the same Idempotency-Key runs (conflict), or a limit is reached (limit_reached); message says which.",
		http.StatusPreconditionFailed:    "No tag in If-Match is current: read it again and send its new ETag.",
		http.StatusRequestEntityTooLarge: "The body has more than 256 KiB.",
		http.StatusUnsupportedMediaType:  "The body is not application/json, or is compressed.",
		http.StatusUnprocessableEntity:   "The Idempotency-Key named another request (idempotency_key_reused): choose a new one.",
		http.StatusTooManyRequests:       "Too many requests within 60 s; wait as Retry-After says.",
		http.StatusInternalServerError:   "An error on our side; quote the request id when you report it.",
		http.StatusServiceUnavailable:    "The service is busy; wait as Retry-After says.",
		http.StatusGatewayTimeout:        "The answer took too long; try again.",
	}[status]
}

// shared refers to the one response that all operations share for a status, or
// all of those whose errors have a shape of their own.
func (b *builder) shared(op *api.Operation, status int) *huma.Response {
	name, description, shape := strings.ReplaceAll(http.StatusText(status), " ", ""), meaning(status), any(api.Problem{})
	if op.Refuse != nil && status != http.StatusNotModified {
		shape, description = op.Refuse.Shape, "error names the fault, and error_description says how to correct it."
		name = schemaName(reflect.TypeOf(shape), "") + name
	}
	if b.api.Components.Responses[name] == nil {
		response := &huma.Response{Description: description}
		headers := []string{"X-Request-Id"}
		if status != http.StatusUnauthorized {
			headers = append(headers, rateHeaders()...)
		}
		switch status {
		case http.StatusNotModified:
			headers = append(headers, "ETag")
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusConflict:
			headers = append(headers, "Retry-After")
		}
		if status != http.StatusNotModified {
			if op.Refuse == nil {
				headers = append(headers, "Link")
			}
			response.Content = map[string]*huma.MediaType{"application/json": {Schema: b.schema(shape), Example: shown(b.examples[name].Response)}}
		}
		response.Headers = b.headers(headers...)
		b.api.Components.Responses[name] = response
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}
