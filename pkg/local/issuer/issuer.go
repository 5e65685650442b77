// Package issuer signs user tokens for local runs and tests, which have no
// identity provider. It uses ES256 and a key that a run keeps in its data folder.
// Its Provider lets demo users sign in by OpenID Connect.
package issuer

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

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Config says what an issuer writes into its tokens; all of it is required.
type Config struct {
	Issuer   string
	Audience string
	Clock    func() time.Time
}

// Issuer signs user tokens.
type Issuer struct {
	cfg    Config
	key    *ecdsa.PrivateKey
	public map[string]string // JSON Web Key (RFC 7517, RFC 7518 section 6.2)
}

// New makes an issuer with a fresh key.
func New(cfg Config) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a signing key: %w", err)
	}
	return newIssuer(key, cfg)
}

// pemType is the type of the PEM block of an issuer's key (PKCS #8).
const pemType = "PRIVATE KEY"

// Load makes an issuer with the key that [Issuer.PEM] wrote.
func Load(text []byte, cfg Config) (*Issuer, error) {
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

func newIssuer(key *ecdsa.PrivateKey, cfg Config) (*Issuer, error) {
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	half := len(point) / 2
	x, y := base64.RawURLEncoding.EncodeToString(point[1:1+half]), base64.RawURLEncoding.EncodeToString(point[1+half:])
	// The key ID is the thumbprint of RFC 7638: these members, in this order.
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`))
	return &Issuer{cfg: cfg, key: key, public: map[string]string{
		"kty": "EC", "use": "sig", "alg": jwt.SigningMethodES256.Alg(), "crv": "P-256", "x": x, "y": y,
		"kid": base64.RawURLEncoding.EncodeToString(sum[:]),
	}}, nil
}

// PEM returns the private key, a secret, for [Load].
func (i *Issuer) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return nil, fmt.Errorf("encode the signing key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// JWKS returns the JWK Set that verifies the issuer's tokens, as JSON.
func (i *Issuer) JWKS() ([]byte, error) {
	return json.Marshal(i.keySet())
}

func (i *Issuer) keySet() map[string]any { return map[string]any{"keys": []any{i.public}} }

// Grant describes the user of a token.
type Grant struct {
	Subject        string
	OrganizationID value.ID
	Roles          []auth.Role // nil: no claim
	Scope          *string     // nil: no claim
	SiteIDs        []value.ID  // nil: no claim
	Lifetime       time.Duration
}

// Sign makes a token for the grant, valid from now for its lifetime.
func (i *Issuer) Sign(g Grant) (string, error) {
	now := i.cfg.Clock()
	claims := jwt.MapClaims{
		"iss": i.cfg.Issuer, "aud": i.cfg.Audience, "sub": g.Subject,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(g.Lifetime).Unix(),
		"organizationId": g.OrganizationID.String(),
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
	return i.sign(claims)
}

func (i *Issuer) sign(claims jwt.MapClaims) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = i.public["kid"]
	signed, err := token.SignedString(i.key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return signed, nil
}
