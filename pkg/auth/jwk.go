package auth

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/auth/apptoken"
)

// The algorithms of user tokens (RFC 7518, RFC 8037).
const (
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
	algHS256 = "HS256"
)

// Bounds of an RSA modulus in bits. RFC 7518, section 3.3, demands 2048; the
// upper bound keeps a key from costing too much to verify with.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// publicKey is a verification key of a JWK Set. It is used with one algorithm
// only, which its type decides.
type publicKey struct {
	id        string
	algorithm string
	key       crypto.PublicKey
}

// jwk holds the members of a JSON Web Key (RFC 7517) that are read.
type jwk struct {
	Kty    string   `json:"kty"`
	Kid    string   `json:"kid,omitzero"`
	Use    string   `json:"use,omitzero"`
	Alg    string   `json:"alg,omitzero"`
	KeyOps []string `json:"key_ops,omitzero"`
	Crv    string   `json:"crv,omitzero"`
	N      string   `json:"n,omitzero"`
	E      string   `json:"e,omitzero"`
	X      string   `json:"x,omitzero"`
	Y      string   `json:"y,omitzero"`
}

// parseKeySet reads a JWK Set. A key that is of another kind, for another
// use or damaged is left out: it must not make the others useless. Only a
// document other than a JWK Set is an error.
func parseKeySet(document []byte) ([]publicKey, error) {
	var set struct {
		Keys *[]jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("read a JWK Set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("read a JWK Set: no member keys")
	}
	if len(*set.Keys) > keysMaxCount {
		return nil, fmt.Errorf("read a JWK Set: more than %d keys", keysMaxCount)
	}
	var keys []publicKey
	for _, raw := range *set.Keys {
		var k jwk
		if json.Unmarshal(raw, &k) != nil {
			continue
		}
		if key, err := k.public(); err == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

var errKeyUse = errors.New("auth: not a key that signs tokens")

func (k *jwk) public() (p publicKey, err error) {
	p.id = k.Kid
	switch {
	case apptoken.IsKeyID(k.Kid): // no issuer of users' tokens has one
		return p, errKeyUse
	case k.Use != "" && k.Use != "sig" || k.KeyOps != nil && !slices.Contains(k.KeyOps, "verify"):
		return p, errKeyUse
	case k.Kty == "RSA":
		p.algorithm = algRS256
		p.key, err = k.rsa()
	case k.Kty == "EC" && k.Crv == "P-256":
		p.algorithm = algES256
		p.key, err = apptoken.PublicKey(k.X, k.Y)
	case k.Kty == "OKP" && k.Crv == "Ed25519":
		p.algorithm = algEdDSA
		p.key, err = k.ed25519()
	default:
		return p, fmt.Errorf("%w: %s %s", errKeyUse, k.Kty, k.Crv)
	}
	if err == nil && k.Alg != "" && k.Alg != p.algorithm {
		err = fmt.Errorf("%w: algorithm %s", errKeyUse, k.Alg)
	}
	return p, err
}

func (k *jwk) rsa() (*rsa.PublicKey, error) {
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	if bits := modulus.BitLen(); errN != nil || bits < minRSABits || bits > maxRSABits {
		return nil, errors.Join(fmt.Errorf("a modulus of %d bits", bits), errN)
	}
	if errE != nil || exponent.BitLen() > 31 || exponent.Bit(0) == 0 || exponent.Int64() < 3 {
		return nil, errors.Join(errors.New("an exponent out of range"), errE)
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
}

func (k *jwk) ed25519() (ed25519.PublicKey, error) {
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil || len(x) != ed25519.PublicKeySize {
		return nil, errors.Join(errors.New("a public key that is not 32 bytes"), err)
	}
	return x, nil
}
