package openapi

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/api"
)

// Headers of answers.
const (
	requestIDHeader = "X-Request-Id"
	etagHeader      = "ETag"
	linkHeader      = "Link"
	locationHeader  = "Location"
	retryHeader     = "Retry-After"
	replayedHeader  = "Idempotency-Replayed"
	syncHeader      = "X-Sync-From"

	deprecationHeader = "Deprecation"
	sunsetHeader      = "Sunset"
)

// rateHeaders tell how much of the rate limit is left.
func rateHeaders() []string {
	return []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
}

// header documents a header of an answer.
func header(name string) *huma.Param {
	text := func(description string) *huma.Param {
		return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	number := func(description string) *huma.Param {
		return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int64"}}
	}
	location := text("The absolute URL of the resource.")
	location.Schema.Format = "uri"
	sync := text("On the first page: the updatedFrom, for deletions the deletedFrom, with which the next read misses nothing, however late a change reaches the list.")
	sync.Schema.Format = "date-time"
	return map[string]*huma.Param{
		syncHeader:              sync,
		requestIDHeader:         text("The request's id, a UUID. Quote it when you report an error."),
		etagHeader:              text("The strong entity tag of the answer, for If-None-Match and If-Match."),
		linkHeader:              text("The first, prev, next and last page, as far as they exist (RFC 8288); for a deprecated operation, the page about its end (rel deprecation)."),
		locationHeader:          location,
		retryHeader:             number("Seconds to wait, at least 1; absent where waiting alone does not help."),
		replayedHeader:          text("true when this is the answer to an earlier request with the same Idempotency-Key."),
		deprecationHeader:       text("Since when the operation is deprecated: @ and seconds since 1970 (RFC 9745)."),
		sunsetHeader:            text("From when on the operation may be gone, an HTTP date (RFC 8594)."),
		"X-RateLimit-Limit":     number("Requests per 60 s, of the application or the user. On every answer to an accepted credential."),
		"X-RateLimit-Remaining": number("How many of them are left now. On every answer to an accepted credential."),
		"X-RateLimit-Reset":     number("When all of them are there again, in seconds since 1970 (UTC). On every answer to an accepted credential."),
	}[name]
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
	names := []string{requestIDHeader}
	if op.Access != api.Public || op.Counted {
		names = append(names, rateHeaders()...)
	}
	if op.Method == http.MethodGet || op.Tagged {
		names = append(names, etagHeader)
	}
	if op.Deprecated != nil {
		names = append(names, deprecationHeader, sunsetHeader)
	}
	if op.List != nil || op.Deprecated != nil {
		names = append(names, linkHeader)
	}
	if op.List != nil && op.List.Sync != "" {
		names = append(names, syncHeader)
	}
	if op.Status == http.StatusCreated || op.Status == http.StatusAccepted {
		names = append(names, locationHeader)
	}
	if op.TakesIdempotencyKey() {
		names = append(names, replayedHeader)
	}
	slices.Sort(names)
	return names
}
