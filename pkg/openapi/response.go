package openapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/httpapi"
)

// responses documents the success, and every error that the declaration
// implies or names.
func (b *builder) responses(op *httpapi.Operation) map[string]*huma.Response {
	success := &huma.Response{Description: http.StatusText(op.Status)}
	if op.Result != nil || op.MediaType != "" {
		content := &huma.MediaType{}
		if op.Result != nil {
			content.Schema = b.schema(op.Result)
		}
		success.Content = map[string]*huma.MediaType{cmp.Or(op.MediaType, "application/json"): content}
	}
	success.Headers = headers(op)
	out := map[string]*huma.Response{strconv.Itoa(op.Status): success}
	if op.Method == http.MethodGet {
		out["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
	}
	for _, status := range errorStatuses(op) {
		refusal := &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/json": {Schema: b.schema(httpapi.Problem{})}},
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			refusal.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds to wait.", Schema: &huma.Schema{Type: huma.TypeInteger}}}
		}
		out[strconv.Itoa(status)] = refusal
	}
	return out
}

// headers documents what a success tells beside its body.
func headers(op *httpapi.Operation) map[string]*huma.Param {
	text := func(description string) *huma.Param {
		return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	found := map[string]*huma.Param{}
	if op.Method == http.MethodGet {
		found["ETag"] = text("The entity tag of this answer, for If-None-Match and If-Match.")
	}
	if op.List != nil {
		found["Link"] = text("The first, prev, next and last page, as far as they exist (RFC 8288).")
	}
	if op.Status == http.StatusCreated || op.Status == http.StatusAccepted {
		found["Location"] = text("The absolute URL of what this answer shows.")
		found["Location"].Schema.Format = "uri"
	}
	return found
}

func errorStatuses(op *httpapi.Operation) []int {
	statuses := append([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusInternalServerError}, op.Errors...)
	if op.MediaType == "" {
		statuses = append(statuses, http.StatusNotAcceptable)
	}
	if op.Access != httpapi.Public {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden,
			http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
	}
	if op.Body != nil {
		statuses = append(statuses, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if op.Method == http.MethodPatch || op.Method == http.MethodDelete {
		statuses = append(statuses, http.StatusPreconditionFailed)
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}
