package openapi

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/api"
)

// rateHeaders tell how much of the rate limit is left.
func rateHeaders() []string {
	return []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
}

// header documents a header of an answer.
func header(name string) *huma.Param {
	const text, number = huma.TypeString, huma.TypeInteger
	h := map[string]struct{ kind, format, description string }{
		"X-Request-Id":         {text, "", "The request's id, a UUID. Quote it when you report an error."},
		"ETag":                 {text, "", "The strong entity tag of the answer, for If-None-Match and If-Match."},
		"Link":                 {text, "", "The first, prev, next and last page, as far as they exist (RFC 8288); for a deprecated operation, the page about its end (rel deprecation); for an error, what to do about its code (rel help)."},
		"Location":             {text, "uri", "The absolute URL of the resource."},
		"Retry-After":          {number, "int64", "Seconds to wait, at least 1; absent where waiting alone does not help."},
		"Idempotency-Replayed": {text, "", "true when this is the answer to an earlier request with the same Idempotency-Key."},
		"Deprecation":          {text, "", "Since when the operation is deprecated: @ and seconds since 1970 (RFC 9745)."},
		"Sunset":               {text, "", "From when on the operation may be gone, an HTTP date (RFC 8594)."},
		"X-Sync-From": {
			text, "date-time",
			"On the first page: the updatedFrom, for deletions the deletedFrom, with which the next read misses nothing, however late a change reaches the list. ",
		},
		"X-Next-Cursor":         {text, "", "The cursor to send as after next time, also if there was no change."},
		"X-RateLimit-Limit":     {number, "int64", "Requests per 60 s, of the application or the user, or of its organization: of the limit that has less left. On every answer to an accepted credential."},
		"X-RateLimit-Remaining": {number, "int64", "How many of them are left now. A list takes one more for each 100 read units of its index past the first 100. On every answer to an accepted credential."},
		"X-RateLimit-Reset":     {number, "int64", "When all of them are there again, in seconds since 1970 (UTC). On every answer to an accepted credential."},
	}[name]
	return &huma.Param{Description: h.description, Schema: &huma.Schema{Type: h.kind, Format: h.format}}
}

// headers refers to the headers that all answers share.
func (b *builder) headers(names ...string) map[string]*huma.Param {
	found := make(map[string]*huma.Param, len(names))
	for _, name := range names {
		b.api.Components.Headers[name] = header(name)
		found[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return found
}

// successHeaders are what a success of the operation tells beside its body.
func successHeaders(op *api.Operation) []string {
	names := []string{"X-Request-Id"}
	if op.Access != api.Public || op.Counted {
		names = append(names, rateHeaders()...)
	}
	if op.Method == http.MethodGet || op.Tagged {
		names = append(names, "ETag")
	}
	if op.Deprecated != nil {
		names = append(names, "Deprecation", "Sunset")
	}
	if op.List != nil || op.Deprecated != nil || op.Rows {
		names = append(names, "Link")
	}
	if op.List != nil && op.List.Sync != "" {
		names = append(names, "X-Sync-From")
	}
	if op.Rows && op.List == nil {
		names = append(names, api.CursorHeader)
	}
	if op.Status == http.StatusCreated || op.Status == http.StatusAccepted {
		names = append(names, "Location")
	}
	if op.TakesIdempotencyKey() {
		names = append(names, "Idempotency-Replayed")
	}
	slices.Sort(names)
	return names
}
