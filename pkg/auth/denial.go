package auth

// Codes of a denial.
const (
	CodeUnauthenticated      = "unauthenticated"
	CodeTokenExpired         = "token_expired"
	CodeKeyRevoked           = "api_key_revoked"
	CodeKeyExpired           = "api_key_expired"
	CodeApplicationSuspended = "application_suspended"
)

// Denial is why credentials are not accepted. Both fields travel through
// templates of API Gateway that cannot escape, so they hold only characters
// that stand for themselves in JSON: ASCII letters, digits, space and
// . , : ; ( ) / _ -
type Denial struct {
	Code    string
	Message string
}

func deny(message string) *Denial { return &Denial{Code: CodeUnauthenticated, Message: message} }

// safeText reports whether the text can stand in a denial.
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
