package auth

import "strings"

// Codes of a denial.
const (
	CodeUnauthenticated      = "unauthenticated"
	CodeTokenExpired         = "token_expired"
	CodeKeyRevoked           = "api_key_revoked"
	CodeKeyExpired           = "api_key_expired"
	CodeApplicationSuspended = "application_suspended"
)

// Denial says why credentials are not accepted. API Gateway puts Code and Message
// into templates that cannot escape, so these hold only characters that JSON
// needs no escape for: ASCII letters, digits, space and . , : ; ( ) / _ -
type Denial struct {
	Code    string
	Message string
	// Passing says that the same credential may be good in some seconds, so that
	// nobody may keep the denial: its key may be about to be published, its time
	// about to begin, or its application about to be activated.
	Passing bool

	// Of is whose credentials they are, when they are genuine; KeyText is the
	// public part of an API key that is well formed. Neither is for the caller.
	Of      Principal
	KeyText string
}

func deny(message string) *Denial { return &Denial{Code: CodeUnauthenticated, Message: message} }

func denyForNow(message string) *Denial {
	return &Denial{Code: CodeUnauthenticated, Message: message, Passing: true}
}

func suspended(p Principal) *Denial {
	return &Denial{Code: CodeApplicationSuspended, Passing: true, Of: p, Message: "the application is suspended; its owner or an admin can activate it"}
}

// safeText reports whether a denial may hold the text.
func safeText(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;()/_-") == ""
}
