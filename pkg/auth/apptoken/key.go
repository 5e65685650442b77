package apptoken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	// KeyIDPrefix begins the id of every key of application tokens, and of no
	// other key that the service accepts.
	KeyIDPrefix = "cis-"
	// MinSecret is the shortest secret, in bytes, that a key is derived from.
	MinSecret = 32

	keyInfo        = "commerce-integration application-token ES256 v1"
	scalarSize     = 32
	extraBytes     = 16
	coordinateSize = 32
)

// IsKeyID reports whether the id is that of a key of application tokens.
func IsKeyID(id string) bool { return strings.HasPrefix(id, KeyIDPrefix) }

// signingKey signs tokens.
type signingKey struct {
	private *ecdsa.PrivateKey
	public  JWK
}

// deriveKey makes the key of a secret, as the package describes it.
func deriveKey(secret string) (*signingKey, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("apptoken: a signing secret must have at least %d bytes", MinSecret)
	}
	okm, err := hkdf.Key(sha256.New, []byte(secret), nil, keyInfo, scalarSize+extraBytes)
	if err != nil {
		return nil, fmt.Errorf("apptoken: derive a signing key: %w", err)
	}
	one := big.NewInt(1)
	below := new(big.Int).Sub(elliptic.P256().Params().N, one)
	scalar := new(big.Int).SetBytes(okm)
	scalar.Mod(scalar, below).Add(scalar, one)
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar.FillBytes(make([]byte, scalarSize)))
	if err != nil {
		return nil, fmt.Errorf("apptoken: derive a signing key: %w", err)
	}
	public, err := jwkOf(&private.PublicKey)
	return &signingKey{private: private, public: public}, err
}

// JWK is a public key of application tokens as a JSON Web Key (RFC 7517).
type JWK struct {
	Kty string `json:"kty" doc:"EC."`
	Crv string `json:"crv" doc:"P-256."`
	X   string `json:"x" doc:"The x coordinate, 32 bytes in base64url."`
	Y   string `json:"y" doc:"The y coordinate, 32 bytes in base64url."`
	Kid string `json:"kid" doc:"The key's id, as the header of a token names it."`
	Use string `json:"use" doc:"sig."`
	Alg string `json:"alg" doc:"ES256."`
}

func jwkOf(public *ecdsa.PublicKey) (JWK, error) {
	point, err := public.Bytes()
	if err != nil {
		return JWK{}, fmt.Errorf("apptoken: encode a public key: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	k := JWK{Kty: "EC", Crv: "P-256", X: encode(point[1 : 1+coordinateSize]), Y: encode(point[1+coordinateSize:]), Use: "sig", Alg: "ES256"}
	thumbprint := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, k.X, k.Y))
	k.Kid = KeyIDPrefix + encode(thumbprint[:])
	return k, nil
}

// Public reads the key. It fails for a key that is not of application tokens,
// or whose id is not its own.
func (k *JWK) Public() (*ecdsa.PublicKey, error) {
	public, err := PublicKey(k.X, k.Y)
	if err != nil {
		return nil, fmt.Errorf("apptoken: the key %s: %w", k.Kid, err)
	}
	own, err := jwkOf(public)
	if err != nil || own != *k {
		return nil, fmt.Errorf("apptoken: the key %s is not one of application tokens", k.Kid)
	}
	return public, nil
}

// PublicKey makes the P-256 key of coordinates in base64url (RFC 7518, section
// 6.2.1): exactly 32 bytes each, of a point on the curve.
func PublicKey(x, y string) (*ecdsa.PublicKey, error) {
	rawX, errX := base64.RawURLEncoding.DecodeString(x)
	rawY, errY := base64.RawURLEncoding.DecodeString(y)
	if err := errors.Join(errX, errY); err != nil || len(rawX) != coordinateSize || len(rawY) != coordinateSize {
		return nil, errors.Join(errors.New("coordinates that are not 32 bytes"), err)
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, rawX, rawY))
}
