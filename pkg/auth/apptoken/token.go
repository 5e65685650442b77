package apptoken

import (
	"cmp"
	"crypto/ecdsa"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// Lifetime is how long a token works, but for that of a portal session.
	Lifetime = time.Hour
	// Audience is the aud of every token: the service's API, whatever URL it is
	// reached at.
	Audience = "commerce-integration-api"

	tokenType = "at+jwt" // RFC 9068, section 2.1
)

// Claims are what a token says.
type Claims struct {
	jwt.RegisteredClaims

	ClientID       value.ID `json:"client_id"`
	Scope          string   `json:"scope"` // separated by spaces
	OrganizationID value.ID `json:"organizationId"`
	ApplicationID  value.ID `json:"applicationId"`
	User           *ForUser `json:"user,omitempty"` // nil: the token is the application's own
}

// ForUser is the user in whose name an application acts, and by what grant. The
// subject of such a token is the user.
type ForUser struct {
	UserID  value.ID   `json:"userId"`
	GrantID value.ID   `json:"grantId"`
	SiteIDs []value.ID `json:"siteIds,omitempty"` // nil: not limited
}

// Grant is what a token is made of.
type Grant struct {
	Issuer         string // the base URL that the client sees
	ClientID       value.ID
	OrganizationID value.ID
	ApplicationID  value.ID
	Scope          string
	User           *ForUser      // nil: the application's own
	Lifetime       time.Duration // 0: [Lifetime]
}

func (k *signingKey) sign(g *Grant, now time.Time) (string, error) {
	subject := g.ClientID
	if g.User != nil {
		subject = g.User.UserID
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, &Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: g.Issuer, Subject: subject.String(), Audience: jwt.ClaimStrings{Audience},
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(cmp.Or(g.Lifetime, Lifetime))), ID: value.NewRandomID().String(),
		},
		ClientID: g.ClientID, Scope: g.Scope, OrganizationID: g.OrganizationID, ApplicationID: g.ApplicationID, User: g.User,
	})
	token.Header["kid"], token.Header["typ"] = k.public.Kid, tokenType
	return token.SignedString(k.private)
}

// KeyFinder returns the published key with the id. issued is when the token
// says that it was made, which nothing has proven yet.
type KeyFinder func(id string, issued time.Time) (*ecdsa.PublicKey, error)

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct{ parser *jwt.Parser }

// NewVerifier makes a verifier under a clock.
func NewVerifier(clock func() time.Time) *Verifier {
	return &Verifier{jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithAudience(Audience),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(clock), jwt.WithStrictDecoding(),
	)}
}

// Verify checks a token's form, signature and times. The issuer is not
// compared: one service can be reached at several URLs, and a holder of its
// keys is the service. An error is the parser's, or the finder's.
func (v *Verifier) Verify(token string, find KeyFinder) (*Claims, error) {
	claims := &Claims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		_, critical := t.Header["crit"]
		if critical || !IsKeyID(id) || t.Header["typ"] != tokenType || claims.IssuedAt == nil {
			return nil, errors.New("apptoken: the header or the claims are not those of an application token")
		}
		return find(id, claims.IssuedAt.Time)
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}
