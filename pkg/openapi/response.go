package openapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/rest"
)

// responses documents the success, and every error that the declaration
// implies or names.
func (b *builder) responses(op *rest.Operation) map[string]*huma.Response {
	success := &huma.Response{Description: http.StatusText(op.Status)}
	mediaType := op.MediaType
	if mediaType == "" {
		mediaType = "application/json"
	}
	switch {
	case op.Result != nil:
		success.Content = map[string]*huma.MediaType{mediaType: {Schema: b.schema(op.Result)}}
	case op.MediaType != "":
		success.Content = map[string]*huma.MediaType{mediaType: {}}
	}
	if op.Status == http.StatusCreated {
		success.Headers = map[string]*huma.Param{"Location": {Description: "The new resource.", Schema: &huma.Schema{Type: huma.TypeString, Format: "uri"}}}
	}
	out := map[string]*huma.Response{strconv.Itoa(op.Status): success}
	if op.Method == http.MethodGet {
		out["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
	}
	for _, status := range errorStatuses(op) {
		out[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/json": {Schema: b.schema(rest.Problem{})}},
		}
	}
	return out
}

func errorStatuses(op *rest.Operation) []int {
	statuses := append([]int{http.StatusNotFound, http.StatusInternalServerError}, op.Errors...)
	if op.Access != rest.Public {
		statuses = append(statuses, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
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
