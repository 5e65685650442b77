package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/value"
)

// IssuerConfig is what an issuer writes into its tokens. All but
// OrganizationClaim is required.
type IssuerConfig struct {
	Issuer            string
	Audience          string
	OrganizationClaim string // default organizationId
	Clock             func() time.Time
}

// Issuer signs user tokens with ES256, for local runs, where there is no
// identity provider.
type Issuer struct {
	cfg IssuerConfig
	key *ecdsa.PrivateKey
	jwk jwk
}

// NewIssuer makes an issuer with a fresh key.
func NewIssuer(cfg IssuerConfig) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a signing key: %w", err)
	}
	return newIssuer(key, cfg)
}

// pemType is the type of the PEM block of an issuer's key (PKCS #8).
const pemType = "PRIVATE KEY"

// LoadIssuer makes an issuer with the key that [Issuer.PEM] wrote.
func LoadIssuer(text []byte, cfg IssuerConfig) (*Issuer, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return nil, errors.New("load a signing key: not a PEM block of a private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("load a signing key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("load a signing key: not a P-256 key")
	}
	return newIssuer(key, cfg)
}

func newIssuer(key *ecdsa.PrivateKey, cfg IssuerConfig) (*Issuer, error) {
	if cfg.OrganizationClaim == "" {
		cfg.OrganizationClaim = "organizationId"
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	public := jwk{
		Kty: "EC", Crv: "P-256",
		X: base64.RawURLEncoding.EncodeToString(point[1 : 1+coordinate]),
		Y: base64.RawURLEncoding.EncodeToString(point[1+coordinate:]),
	}
	// The key id is the thumbprint of RFC 7638: these members, in this order.
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + public.X + `","y":"` + public.Y + `"}`))
	public.Kid, public.Use, public.Alg = base64.RawURLEncoding.EncodeToString(sum[:]), "sig", algES256
	return &Issuer{cfg: cfg, key: key, jwk: public}, nil
}

// PEM returns the private key, a secret, for [LoadIssuer].
func (i *Issuer) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return nil, fmt.Errorf("encode the signing key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// JWKS returns the JWK Set that verifies the issuer's tokens, as JSON.
func (i *Issuer) JWKS() ([]byte, error) {
	return json.Marshal(map[string][]jwk{"keys": {i.jwk}})
}

// Grant is what a token says of its user.
type Grant struct {
	Subject        string
	OrganizationID value.ID
	Roles          []Role     // nil: no claim
	Scope          *string    // nil: no claim
	SiteIDs        []value.ID // nil: no claim
	Lifetime       time.Duration
}

// Sign makes a token of the grant, valid from now for its lifetime.
func (i *Issuer) Sign(g Grant) (string, error) {
	now := i.cfg.Clock()
	claims := jwt.MapClaims{
		"iss": i.cfg.Issuer, "aud": i.cfg.Audience, "sub": g.Subject,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(g.Lifetime).Unix(),
		i.cfg.OrganizationClaim: g.OrganizationID.String(),
	}
	if g.Roles != nil {
		claims["roles"] = g.Roles
	}
	if g.Scope != nil {
		claims["scope"] = *g.Scope
	}
	if g.SiteIDs != nil {
		claims["siteIds"] = g.SiteIDs
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = i.jwk.Kid
	signed, err := token.SignedString(i.key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return signed, nil
}
