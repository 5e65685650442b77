package account

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// SecretOverlap is how long the client secret before a rotation still works.
const SecretOverlap = 24 * time.Hour

// TokenScopes are the scopes that an application's tokens can be granted,
// sorted.
func TokenScopes() []string {
	return slices.Sorted(slices.Values(append(ReadScopes(), "records:write", "webhooks:read", "webhooks:write")))
}

// Client is an application as the client of OAuth 2.0 that asks for tokens.
type Client struct {
	Application *Application
	Secrets     ClientSecrets
	TokenScopes []string // sorted, never empty
	Public      bool     // it cannot keep a secret, and shows none
}

// ClientSecrets are the hashes that a presented client secret is checked
// against.
type ClientSecrets struct {
	Current       Hash
	Previous      Hash       // of the secret before the last rotation
	PreviousUntil value.Time // when that stops working; 0: there was no rotation
}

// Accept reports whether the secret works at the time now. It takes the same
// time whichever of them it is.
func (s *ClientSecrets) Accept(secret string, now value.Time) bool {
	presented := HashSecret(secret)
	current, previous := s.Current.Equal(presented), s.Previous.Equal(presented)
	return current || previous && now < s.PreviousUntil
}

// RotateSecret gives the client a new secret and returns it. The one that was
// current works for [SecretOverlap] more; one from before it stops at once.
func (c *Client) RotateSecret(now value.Time) (secret string) {
	secret = newClientSecret()
	c.Secrets = ClientSecrets{Current: HashSecret(secret), Previous: c.Secrets.Current, PreviousUntil: now.Add(SecretOverlap)}
	c.Application.ClientSecret = maskClientSecret(secret)
	c.Application.touch(now)
	return secret
}

// TokenScopesDto is what an application's tokens may do: the answer, and the
// input of a change.
type TokenScopesDto struct {
	Scopes *[]string `json:"scopes" nullable:"false" minItems:"1" doc:"The scopes that tokens of the application may have: {tokenScopes}."`
}

// ParseTokenScopes reads the body of a change: the scopes, sorted, each once.
func ParseTokenScopes(body []byte) ([]string, error) {
	var (
		c   Checks
		dto TokenScopesDto
	)
	if err := c.Read(body, &dto); err != nil {
		return nil, err
	}
	if dto.Scopes == nil {
		c.Add("scopes", fault.DetailRequired, "is required")
		return nil, c.Err()
	}
	c.Refuse(len(*dto.Scopes) == 0, "scopes", fault.DetailOutOfRange, "must not be empty: suspend the application to refuse its tokens")
	c.scopesOf(*dto.Scopes, TokenScopes())
	return slices.Compact(slices.Sorted(slices.Values(*dto.Scopes))), c.Err()
}

// The types of a client (RFC 6749, section 2.1).
const (
	confidential = "CONFIDENTIAL"
	public       = "PUBLIC"
)

// ClientDto is the type of an application as a client: the answer, and the input
// of a change.
type ClientDto struct {
	Type *string `json:"type" nullable:"false" enum:"CONFIDENTIAL,PUBLIC" doc:"CONFIDENTIAL: it sends its secret. PUBLIC: it runs where no secret stays one, as in a browser or on a user's machine, and sends none."`
}

// ParseClient reads the body of a change: whether the client is public.
func ParseClient(body []byte) (isPublic bool, err error) {
	var (
		c   Checks
		dto ClientDto
	)
	if err := c.Read(body, &dto); err != nil {
		return false, err
	}
	if dto.Type == nil || *dto.Type != confidential && *dto.Type != public {
		c.Add("type", fault.DetailUnknown, "must be %s or %s", confidential, public)
		return false, c.Err()
	}
	return *dto.Type == public, c.Err()
}

// Shape is the type of the client as the API shows it.
func (c *Client) Shape() *ClientDto {
	if c.Public {
		return &ClientDto{new(public)}
	}
	return &ClientDto{new(confidential)}
}

// scopesOf checks that every scope is allowed.
func (c *Checks) scopesOf(scopes, allowed []string) {
	for i, scope := range scopes {
		if !slices.Contains(allowed, scope) {
			c.Add("scopes["+strconv.Itoa(i)+"]", fault.DetailUnknown, "must be one of %s", strings.Join(allowed, ", "))
		}
	}
}
