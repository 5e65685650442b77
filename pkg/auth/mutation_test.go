package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/account"
)

// mutations makes credentials that nobody gave from such as are good.
type mutations struct {
	*harness
	keys, tokens []string
	good         map[string]bool // both
	secrets      [][]byte        // the texts of public keys, as secrets of HS256
}

// newMutations makes an authorizer with credentials of every kind: keys of one
// application, its tokens, and users' tokens of every algorithm.
func newMutations(t testing.TB) *mutations {
	t.Helper()
	m := &mutations{harness: newHarness(t, account.CreateApiKeyDto{}), good: map[string]bool{}}
	s := makeSigners()
	p := newProvider(t, rsaJWK("r", s.rsa), ecJWK("e", s.ecdsa), edJWK("o", s.ed25519))
	verifier := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.Clock, cfg.JWKSURL = m.now, p.URL })
	m.Authorizer = NewAuthorizer(verifier, m.shelf, AuthorizerConfig{Clock: m.now})
	name := "another"
	for range 3 {
		key, credential := account.NewKey(&m.app, user, account.CreateApiKeyDto{Name: &name}, m.key.CreatedAt)
		m.shelf.credentials[credential.KeyText] = credential
		m.keys = append(m.keys, key.Key)
	}
	signer := m.signer(oneSecret, otherSecret)
	other := claims{"sub": "another", "roles": []string{"VIEWER"}}
	m.tokens = []string{
		m.give(t, signer, "orders:read"), m.give(t, signer, "products:read"),
		sign(t, jwt.SigningMethodRS256, "r", s.rsa, with(nil)), sign(t, jwt.SigningMethodRS256, "r", s.rsa, with(other)),
		sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(nil)), sign(t, jwt.SigningMethodES256, "", s.ecdsa, with(other)),
		sign(t, jwt.SigningMethodEdDSA, "o", s.ed25519, with(nil)), sign(t, jwt.SigningMethodEdDSA, "o", s.ed25519, with(other)),
		sign(t, jwt.SigningMethodHS256, "", []byte(testSecret), with(nil)), sign(t, jwt.SigningMethodHS256, "", []byte(testSecret), with(other)),
	}
	for _, key := range m.keys {
		m.good[key] = true
	}
	for _, token := range m.tokens {
		m.good[token] = true
	}
	published := m.shelf.published.Keys[0]
	for _, k := range []jwk{rsaJWK("r", s.rsa), ecJWK("e", s.ecdsa), edJWK("o", s.ed25519), {N: published.X, X: published.Y}} {
		for _, text := range []string{k.N, k.X, k.Y} {
			raw, err := base64.RawURLEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			m.secrets = append(m.secrets, []byte(text), raw)
		}
	}
	for _, token := range m.tokens {
		if accepted := m.present(t, false, token); !accepted {
			t.Fatalf("a good token is refused: %s", token)
		}
	}
	for _, key := range m.keys {
		if accepted := m.present(t, true, key); !accepted {
			t.Fatalf("a good key is refused: %s", key)
		}
	}
	return m
}

// present makes a request with the credential.
func (m *mutations) present(t testing.TB, key bool, text string) (accepted bool) {
	t.Helper()
	headers := map[string][]string{"Authorization": {"Bearer " + text}}
	if key {
		headers = map[string][]string{"X-API-Key": {text}}
	}
	_, denial, err := m.Authorize(t.Context(), Request{Headers: headers, Read: true})
	return err == nil && denial == nil
}

// next makes a credential that is none of the good ones.
func (m *mutations) next(r *rand.Rand) (key bool, text string) {
	for {
		if key = r.IntN(3) == 0; key {
			text = mutatedKey(r, m.keys)
		} else {
			text = m.mutatedToken(r)
		}
		// What surrounds a credential is no part of it.
		if !m.good[strings.TrimSpace(text)] {
			return key, text
		}
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// altered changes a text as anything on its way could.
func altered(r *rand.Rand, text string) string {
	if text == "" {
		return string(rune('A' + r.IntN(26)))
	}
	b, i := []byte(text), r.IntN(len(text))
	switch r.IntN(6) {
	case 0:
		b[i] ^= 1 << r.IntN(8)
	case 1:
		b = b[:i]
	case 2:
		b = b[i+1:]
	case 3:
		b = append(b[:i], b[i+1:]...)
	case 4:
		j := r.IntN(len(b))
		b[i], b[j] = b[j], b[i]
	default:
		b[i] = pick(r, []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
	}
	return string(b)
}

// mutatedKey also makes the checksum right, which proves nothing.
func mutatedKey(r *rand.Rand, keys []string) string {
	const prefix, id, checksum = 9, 17, 49 // where the parts of a key begin or end
	key, other := pick(r, keys), pick(r, keys)
	switch r.IntN(5) {
	case 0:
		return altered(r, key)
	case 1: // the id of one with the rest of another
		return key[:id] + other[id:]
	case 2:
		return summed(key[:id] + other[id:checksum])
	case 3: // another secret under an id that there is
		return summed(key[:id] + altered(r, key[id:checksum]))
	}
	return summed(key[:prefix] + altered(r, key[prefix:checksum]))
}

// summed adds the checksum to the body of a key, as package account describes it.
func summed(body string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum, text := crc32.ChecksumIEEE([]byte(body)), make([]byte, 6)
	for i := len(text) - 1; i >= 0; i-- {
		text[i], sum = digits[sum%62], sum/62
	}
	return body + string(text)
}

func (m *mutations) mutatedToken(r *rand.Rand) string {
	parts, others := strings.Split(pick(r, m.tokens), "."), strings.Split(pick(r, m.tokens), ".")
	switch r.IntN(8) {
	case 0:
		return altered(r, strings.Join(parts, "."))
	case 1: // one part, as its text
		i := r.IntN(len(parts))
		parts[i] = altered(r, parts[i])
	case 2: // one part, as what the text stands for
		i := r.IntN(len(parts))
		parts[i] = b64([]byte(altered(r, plain(parts[i]))))
	case 3: // a part of another token
		i := r.IntN(len(parts))
		parts[i] = others[i]
	case 4: // parts in another place
		i, j := r.IntN(len(parts)), r.IntN(len(parts))
		parts[i], parts[j] = parts[j], parts[i]
	case 5: // another algorithm and key id
		parts[0] = m.header(r, pick(r, []string{"none", "NONE", "None", "", "HS256", "HS384", "HS512", "RS256", "RS384", "PS256", "ES256", "ES384", "EdDSA"}))
	case 6: // a public key as a shared secret
		parts[0] = m.header(r, "HS256")
		mac := hmac.New(sha256.New, pick(r, m.secrets))
		mac.Write([]byte(parts[0] + "." + parts[1]))
		parts[2] = b64(mac.Sum(nil))
	default: // claims of another user, under the same signature
		parts[1] = b64([]byte(strings.Replace(plain(parts[1]), org.String(), siteA.String(), 1)))
	}
	return strings.Join(parts, ".")
}

func (m *mutations) header(r *rand.Rand, algorithm string) string {
	kid := pick(r, []string{"r", "e", "o", "", "x", m.shelf.published.Keys[0].Kid, "cis-"})
	typ := pick(r, []string{"JWT", "at+jwt"})
	return b64([]byte(`{"alg":"` + algorithm + `","kid":"` + kid + `","typ":"` + typ + `"}`))
}

func plain(part string) string {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return part
	}
	return string(raw)
}

func TestMutatedCredentialsAreRefused(t *testing.T) {
	m := newMutations(t)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
	for range 20_000 {
		key, text := m.next(r)
		if accepted := m.present(t, key, text); accepted {
			t.Errorf("accepted: %q", text)
		}
	}
}
