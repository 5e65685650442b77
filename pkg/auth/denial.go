package auth

// Codes of a denial.
const (
	CodeUnauthenticated      = "unauthenticated"
	CodeTokenExpired         = "token_expired"
	CodeKeyRevoked           = "api_key_revoked"
	CodeKeyExpired           = "api_key_expired"
	CodeApplicationSuspended = "application_suspended"
)

// Denial says why credentials are not accepted. API Gateway puts both fields
// into templates that cannot escape, so they hold only characters that JSON
// needs no escape for: ASCII letters, digits, space and . , : ; ( ) / _ -
type Denial struct {
	Code    string
	Message string
}

func deny(message string) *Denial { return &Denial{Code: CodeUnauthenticated, Message: message} }

// safeText reports whether a denial may hold the text.
func safeText(text string) bool {
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case r == ' ', r == '.', r == ',', r == ':', r == ';', r == '(', r == ')', r == '/', r == '_', r == '-':
		default:
			return false
		}
	}
	return text != ""
}
