package account

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Bounds of grants.
const (
	// MaxGrants is the most grants of one user to one application.
	MaxGrants = 20
	// CodeLifetime is how long a code can be exchanged for tokens.
	CodeLifetime = time.Minute
	// GrantLifetime is how long a grant works, however often its tokens are
	// refreshed: the service does not learn that a user has left.
	GrantLifetime = 30 * 24 * time.Hour
	// RefreshOverlap is how long the refresh token before the newest one gets the
	// answer again that may have been lost.
	RefreshOverlap = 10 * time.Second
)

// GrantScopes are the scopes that a user can grant to an application, sorted.
func GrantScopes() []string { return append(ReadScopes(), "webhooks:read", "webhooks:write") }

// Grant is what a user lets an application do in the user's name, or who opens a
// portal session for the application, as the API shows it.
type Grant struct {
	ID              value.ID    `json:"id"`
	OrganizationID  value.ID    `json:"organizationId"`
	ApplicationID   value.ID    `json:"applicationId" doc:"The application that may act for the user."`
	ApplicationName string      `json:"applicationName" doc:"The application's name when the user was asked."`
	UserID          value.ID    `json:"userId" doc:"The user who granted it."`
	Scopes          []string    `json:"scopes" doc:"What the user allowed, sorted."`
	EventScopes     *[]string   `json:"eventScopes" doc:"Of a portal session: the read scopes of the records whose events it may subscribe to and see. It reads no record. null of what a user granted."`
	SiteIDs         *[]value.ID `json:"siteIds" doc:"The sites that the user was limited to. null if not limited."`
	CreatedAt       value.Time  `json:"createdAt" doc:"When the user allowed it."`
	RefreshedAt     *value.Time `json:"refreshedAt" doc:"When the application last got tokens by it, or the portal session was opened. null if that never happened."`
	ExpiresAt       value.Time  `json:"expiresAt" doc:"When it ends: 60 s after it was allowed, or 30 days once the application has got tokens; a portal session that was opened, at the end of its time."`
}

// Family is a grant with what its code and refresh tokens are checked against.
// Each is a text of the form
//
//	code           ac_ grant _ 40 digits
//	refresh token  rt_ grant _ the code's digits _ 40 digits
//	portal code    ps_ grant _ 40 digits
//
// where grant is the grant's id and digits are of base62. So every refresh
// token of the family, however old, can be told from a text that somebody made
// up. Only hashes are stored.
type Family struct {
	Grant   `dynamodbav:"-"`
	Version int64 // rises with every write to it

	ChangedBy *AuditEntry `dynamodbav:"-"` // by which it is being stored; nil: not for the audit trail

	Code        Hash       // of the code's digits
	Until       value.Time // when it ends once the code was exchanged
	Challenge   string     // of the code verifier, by S256 (RFC 7636, section 4.2)
	RedirectURI string     // that the application asked with
	Public      bool       // whether it needed no secret then

	Newest, Previous Hash   // of the last digits of refresh tokens; zero before there are any
	Answer           []byte // sealed: the answer with the newest
}

// Reasons why a code or a refresh token gets no tokens.
var (
	// ErrNotOfFamily means that the text is not one of the family, or a code that
	// comes with another verifier or redirect URI than it was asked for with.
	ErrNotOfFamily = errors.New("account: no code or refresh token of the grant, or another's verifier or redirect URI")
	// ErrReused means that the text was used before: somebody else may have it.
	ErrReused = errors.New("account: the code or the refresh token was used before")
	// ErrRepeated means that the answer to the text may have been lost: it is
	// the family's [Family.Answer].
	ErrRepeated = errors.New("account: the refresh token was used a moment ago")
)

const (
	acPrefix    = "ac"
	rtPrefix    = "rt"
	psPrefix    = "ps"
	grantDigits = 40
)

// NewFamily makes the grant of a user to an application with the code that the
// application, or the page of a portal session, exchanges. The caller sets what the
// application asked with.
func NewFamily(g Grant, lifetime time.Duration, now value.Time) (f *Family, code string) {
	g.ID, g.CreatedAt, g.ExpiresAt = value.NewID(), now, now.Add(CodeLifetime)
	digits, prefix := randomBase62(grantDigits), acPrefix
	if g.OfPortal() {
		prefix = psPrefix
	}
	return &Family{Grant: g, Version: 1, Code: HashSecret(digits), Until: now.Add(lifetime)}, prefix + "_" + g.ID.String() + "_" + digits
}

// OfPortal reports whether the grant is a portal session.
func (g *Grant) OfPortal() bool { return g.EventScopes != nil }

// GrantOf returns the grant that a code or a refresh token names.
func GrantOf(text string) (value.ID, error) {
	parts := strings.Split(text, "_")
	if len(parts) < 3 {
		return value.ID{}, ErrNotOfFamily
	}
	return value.ParseID(parts[1])
}

// Exchange takes a code and returns the first refresh token.
func (f *Family) Exchange(code, verifier, redirectURI string, now value.Time) (refresh string, err error) {
	parts := strings.Split(code, "_")
	challenge := sha256.Sum256([]byte(verifier))
	switch {
	case len(parts) != 3 || parts[0] != acPrefix || !f.Code.Equal(HashSecret(parts[2])):
		return "", ErrNotOfFamily
	case f.Newest != Hash{}:
		return "", ErrReused
	case f.Challenge != base64.RawURLEncoding.EncodeToString(challenge[:]) || f.RedirectURI != redirectURI:
		return "", ErrNotOfFamily
	}
	f.ExpiresAt = f.Until
	return f.rotate(parts[2], now), nil
}

// Open takes the code of a portal session, which gets no refresh token.
func (f *Family) Open(code string, now value.Time) error {
	parts := strings.Split(code, "_")
	switch {
	case len(parts) != 3 || parts[0] != psPrefix || !f.OfPortal() || !f.Code.Equal(HashSecret(parts[2])):
		return ErrNotOfFamily
	case f.RefreshedAt != nil:
		return ErrReused
	}
	f.ExpiresAt, f.RefreshedAt = f.Until, &now
	return nil
}

// Rotate takes a refresh token and returns the next one.
func (f *Family) Rotate(refresh string, now value.Time) (next string, err error) {
	if !f.Refreshes(refresh) {
		return "", ErrNotOfFamily
	}
	parts := strings.Split(refresh, "_")
	switch presented := HashSecret(parts[3]); {
	case f.Newest.Equal(presented):
		return f.rotate(parts[2], now), nil
	case f.Previous.Equal(presented) && now < f.RefreshedAt.Add(RefreshOverlap):
		return "", ErrRepeated
	}
	return "", ErrReused
}

// Refreshes reports whether the text is a refresh token of the family, however old.
// There is none before the first: what looks like one was made up of the code.
func (f *Family) Refreshes(text string) bool {
	parts := strings.Split(text, "_")
	return len(parts) == 4 && parts[0] == rtPrefix && f.Newest != Hash{} && f.Code.Equal(HashSecret(parts[2]))
}

func (f *Family) rotate(codeDigits string, now value.Time) (refresh string) {
	digits := randomBase62(grantDigits)
	f.Previous, f.Newest, f.RefreshedAt = f.Newest, HashSecret(digits), &now
	return strings.Join([]string{rtPrefix, f.ID.String(), codeDigits, digits}, "_")
}

// Redirects reports whether answers to authorization requests of the
// application may go to the URI: its redirectUri, or the same with another port where that is
// a loopback address (RFC 8252, section 7.3).
func (a *Application) Redirects(uri string) bool {
	if a.RedirectURI == nil {
		return false
	}
	return uri == *a.RedirectURI || loopbackWithoutPort(uri) != "" && loopbackWithoutPort(uri) == loopbackWithoutPort(*a.RedirectURI)
}

// loopbackWithoutPort is an http URI of a loopback address without its port; ""
// of any other.
func loopbackWithoutPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || u.User != nil || !ValidHost(u) || !isLoopback(u.Hostname()) {
		return ""
	}
	host := u.Host
	_, rest, _ := strings.Cut(uri, host)
	return u.Hostname() + rest
}
