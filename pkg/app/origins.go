package app

import (
	"net/http"
	"strings"

	"github.com/rs/cors"
)

// preflightSeconds is how long a browser keeps the answer to a preflight
// request: two hours, the most that common browsers do.
const preflightSeconds = 7200

// allowOrigins lets scripts of the origins use the handler, as CORS has it, and
// answers their preflight requests. Origins are separated by commas; without
// any, OPTIONS is a method like another.
//
// Scripts send credentials in headers. Cookies, of which the service has none,
// stay out.
func allowOrigins(origins string, handler http.Handler) http.Handler {
	if origins == "" {
		return handler
	}
	return sharing(origins).Handler(handler)
}

// allowsOrigin reports whether scripts of a request's origin may use the API: those of
// the origins, and those of the user's own machine.
func allowsOrigin(origins string) func(*http.Request) bool {
	allowed := sharing(origins + ",http://localhost,http://localhost:*,http://127.0.0.1:*,http://[::1]:*")
	return allowed.OriginAllowed
}

func sharing(origins string) *cors.Cors {
	return cors.New(cors.Options{
		AllowedOrigins: strings.Split(origins, ","),
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{
			"Authorization", "Cache-Control", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match",
			"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "X-API-Key", "X-Site-Id",
		},
		ExposedHeaders: []string{
			"Allow", "Deprecation", "ETag", "Idempotency-Replayed", "Link", "Location", "Retry-After", "Sunset", "WWW-Authenticate",
			"X-Next-Cursor", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id", "X-Sync-From",
		},
		MaxAge: preflightSeconds,
	})
}
