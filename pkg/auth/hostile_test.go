package auth

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
)

func setOf(t testing.TB, keys ...jwk) string {
	t.Helper()
	document, err := json.Marshal(map[string][]jwk{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// under returns a verifier of the keys at the URL.
func under(t *testing.T, url string, client *http.Client) *Verifier {
	t.Helper()
	return newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.HS256Secret, cfg.Client = url, "", client })
}

// verdict is "ok", "error", "denied", or "denied for now".
func verdict(t *testing.T, v *Verifier, token string) string {
	t.Helper()
	_, denial, err := v.Verify(t.Context(), token)
	got, _, _ := strings.Cut(outcomeOf(t, denial, err), ": ")
	switch {
	case denial != nil && denial.Passing:
		return "denied for now"
	case denial != nil:
		return "denied"
	}
	return got
}

func TestAHostileKeyServerIsAnErrorAndNeverADenial(t *testing.T) {
	s := makeSigners()
	good := setOf(t, ecJWK("e", s.ecdsa))
	token := sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(nil))
	many := func(n int) string {
		keys := make([]jwk, n)
		for i := range keys {
			keys[i] = ecJWK("e", s.ecdsa)
		}
		return setOf(t, keys...)
	}
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, good) }
	}
	var followed atomic.Int32
	others := http.NewServeMux()
	others.HandleFunc("/others/keys", func(w http.ResponseWriter, _ *http.Request) {
		followed.Add(1)
		_, _ = io.WriteString(w, good)
	})
	elsewhere := httptest.NewServer(others)
	t.Cleanup(elsewhere.Close)
	redirect := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/others/keys", code) }
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"a good set":            {answer(good), "ok"},
		"1 MiB":                 {answer(good + strings.Repeat(" ", keysMaxLength-len(good))), "ok"},
		"a byte more":           {answer(good + strings.Repeat(" ", keysMaxLength-len(good)+1)), "error"},
		"without an end":        {endless, "error"},
		"a little that unpacks": {unpacking(t, good), "error"},
		"100 keys":              {answer(many(keysMaxCount)), "ok"},
		"101 keys":              {answer(many(keysMaxCount + 1)), "error"},
		"no keys":               {answer(`{"keys":[]}`), "denied for now"},
		"two members keys":      {answer(`{"keys":[],` + good[1:]), "error"},
		"an array":              {answer(`[` + good + `]`), "error"},
		"a web page":            {answer("<html>" + good), "error"},
		"a redirect (301)":      {redirect(301), "error"},
		"a redirect (302)":      {redirect(302), "error"},
		"a redirect (307)":      {redirect(307), "error"},
		"a redirect (308)":      {redirect(308), "error"},
		"no content":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "error"},
		"a part of it":          {status(206), "error"},
		"not found":             {status(404), "error"},
		"an error":              {status(500), "error"},
		"an answer that breaks": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "error"},
		"a body that breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = io.WriteString(w, good)
		}, "error"},
		"a header without an end": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 11<<20)) }, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			if got := verdict(t, under(t, server.URL, nil), token); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	if followed.Load() != 0 {
		t.Errorf("%d redirects were followed, want none", followed.Load())
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	chunk := bytes.Repeat([]byte{' '}, 1<<16)
	for r.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// unpacking answers a set of 64 MiB that is some KiB on its way.
func unpacking(t *testing.T, set string) http.HandlerFunc {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, set+strings.Repeat(" ", 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

func TestASlowKeyServerTakesThreeSeconds(t *testing.T) {
	token := sign(t, jwt.SigningMethodES256, "e", makeSigners().ecdsa, with(nil))
	for name, slow := range map[string]http.HandlerFunc{
		"before the header": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the body": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pipe := make(pipes)
				server := &http.Server{Handler: slow}
				go func() { _ = server.Serve(pipe) }()
				defer server.Close()
				transport := &http.Transport{DialContext: pipe.dial}
				defer transport.CloseIdleConnections()
				began := time.Now()
				if got := verdict(t, under(t, "http://issuer", &http.Client{Transport: transport}), token); got != "error" {
					t.Errorf("got %s, want an error", got)
				}
				if took := time.Since(began); took != readTimeout {
					t.Errorf("took %s, want %s", took, readTimeout)
				}
			})
		})
	}
}

// pipes is a listener in memory, whose time a test can make pass.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func TestOnlyATrustedServerIsAskedOverHTTPS(t *testing.T) {
	s := makeSigners()
	good := setOf(t, ecJWK("e", s.ecdsa))
	token := sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(nil))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, good) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is broken off
	server.StartTLS()
	defer server.Close()
	if got := verdict(t, under(t, server.URL, server.Client()), token); got != "ok" {
		t.Errorf("of an authority that is trusted: got %s, want ok", got)
	}
	if got := verdict(t, under(t, server.URL, nil), token); got != "error" {
		t.Errorf("of another authority: got %s, want an error", got)
	}
}

func TestKeysOfTheSameIDVerifyTheirOwnTokensOnly(t *testing.T) {
	s := makeSigners()
	second, third := newECKey(t), newECKey(t)
	v := under(t, newProvider(t, ecJWK("k", s.ecdsa), rsaJWK("k", s.rsa), ecJWK("k", second), edJWK("k", s.ed25519)).URL, nil)
	for name, tc := range map[string]struct{ token, want string }{
		"the first":                     {sign(t, jwt.SigningMethodES256, "k", s.ecdsa, with(nil)), "ok"},
		"the second of the same type":   {sign(t, jwt.SigningMethodES256, "k", second, with(nil)), "ok"},
		"one of another type":           {sign(t, jwt.SigningMethodRS256, "k", s.rsa, with(nil)), "ok"},
		"one of a third type":           {sign(t, jwt.SigningMethodEdDSA, "k", s.ed25519, with(nil)), "ok"},
		"one that is not published":     {sign(t, jwt.SigningMethodES256, "k", third, with(nil)), "denied"},
		"one that is not, without a id": {sign(t, jwt.SigningMethodES256, "", third, with(nil)), "denied for now"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict(t, v, tc.token); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func newECKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestBoundsOfAnRSAKey(t *testing.T) {
	bits := func(n uint) string { return b64(new(big.Int).SetBit(big.NewInt(1), int(n)-1, 1).Bytes()) }
	const modulus = 2048
	exponent := func(e string) string {
		n, ok := new(big.Int).SetString(e, 10)
		if !ok {
			t.Fatal(e)
		}
		return b64(n.Bytes())
	}
	for name, tc := range map[string]struct {
		n, e string
		want int
	}{
		"2047 bits": {bits(2047), "AQAB", 0}, "2048 bits": {bits(2048), "AQAB", 1},
		"8192 bits": {bits(8192), "AQAB", 1}, "8193 bits": {bits(8193), "AQAB", 0},
		"no modulus": {"", "AQAB", 0}, "no exponent": {bits(modulus), "", 0},
		"0": {bits(modulus), exponent("0"), 0}, "1": {bits(modulus), exponent("1"), 0}, "2": {bits(modulus), exponent("2"), 0},
		"3": {bits(modulus), exponent("3"), 1}, "65536": {bits(modulus), exponent("65536"), 0}, "65537": {bits(modulus), exponent("65537"), 1},
		"2^31-1": {bits(modulus), exponent("2147483647"), 1}, "2^31+1": {bits(modulus), exponent("2147483649"), 0},
		"2^64+3": {bits(modulus), exponent("18446744073709551619"), 0}, "the modulus": {bits(modulus), bits(modulus), 0},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := parseKeySet([]byte(setOf(t, jwk{Kty: "RSA", Kid: "r", N: tc.n, E: tc.e})))
			if err != nil || len(keys) != tc.want {
				t.Errorf("got %d keys, %v, want %d", len(keys), err, tc.want)
			}
		})
	}
}

// TestAModulusThatIsNoneVerifiesNothing holds that numbers that are no modulus
// of a key make a denial, and no panic.
func TestAModulusThatIsNoneVerifiesNothing(t *testing.T) {
	s := makeSigners()
	token := sign(t, jwt.SigningMethodRS256, "r", s.rsa, with(nil))
	even := new(big.Int).Lsh(s.rsa.N, 1)
	power := new(big.Int).Lsh(big.NewInt(1), 2047)
	for name, n := range map[string]*big.Int{"an even one": even, "a power of two": power, "a prime's square": new(big.Int).Mul(s.rsa.N, s.rsa.N)} {
		t.Run(name, func(t *testing.T) {
			v := under(t, newProvider(t, jwk{Kty: "RSA", Kid: "r", N: b64(n.Bytes()), E: "AQAB"}).URL, nil)
			if got := verdict(t, v, token); got != "denied" {
				t.Errorf("got %s, want a denial", got)
			}
		})
	}
}

// forms are the texts of a public key that an attacker could take as the secret
// of HS256.
func forms(t *testing.T, public any, key jwk) map[string][]byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return map[string][]byte{
		"DER": der, "PEM": block, "PEM without its line feed": bytes.TrimSpace(block), "JWK": text, "the key id": []byte(key.Kid),
		"n": []byte(key.N), "x": []byte(key.X), "y": []byte(key.Y), "nothing": {},
	}
}

func TestNoPublicKeyIsTheSecretOfHS256(t *testing.T) {
	s := makeSigners()
	keys := []jwk{rsaJWK("r", s.rsa), ecJWK("e", s.ecdsa), edJWK("o", s.ed25519)}
	p := newProvider(t, keys...)
	both := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL = p.URL })
	publicOnly := under(t, p.URL, nil)
	for i, public := range []any{&s.rsa.PublicKey, &s.ecdsa.PublicKey, s.ed25519.Public().(ed25519.PublicKey)} {
		for form, secret := range forms(t, public, keys[i]) {
			for _, method := range []jwt.SigningMethod{jwt.SigningMethodHS256, jwt.SigningMethodHS384, jwt.SigningMethodHS512} {
				name := fmt.Sprintf("%s %s %s", keys[i].Kid, form, method.Alg())
				t.Run(name, func(t *testing.T) {
					token := sign(t, method, keys[i].Kid, secret, with(nil))
					if got := verdict(t, both, token) + ", " + verdict(t, publicOnly, token); got != "denied, denied" {
						t.Errorf("got %s, want denials", got)
					}
				})
			}
		}
	}
}

func TestNoneIsNoAlgorithmHoweverItIsWritten(t *testing.T) {
	s := makeSigners()
	p := newProvider(t, ecJWK("e", s.ecdsa))
	both := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL = p.URL })
	parts := strings.Split(sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(nil)), ".")
	algorithms := []string{`null`, `0`, `false`, `[]`, `["none"]`, `{}`, `""`, `" none"`, `"none "`, `"\u0000none"`, `"n\u006fne"`}
	for mask := range 16 {
		word := []byte("none")
		for i := range word {
			if mask>>i&1 == 1 {
				word[i] -= 'a' - 'A'
			}
		}
		algorithms = append(algorithms, `"`+string(word)+`"`)
	}
	for _, alg := range algorithms {
		for _, kid := range []string{`"e"`, `null`, `""`} {
			for _, signature := range []string{"", parts[2], "AA"} {
				token := b64([]byte(`{"alg":`+alg+`,"kid":`+kid+`}`)) + "." + parts[1] + "." + signature
				if got := verdict(t, both, token); got != "denied" {
					t.Errorf("alg %s, kid %s, signature %q: got %s, want a denial", alg, kid, signature, got)
				}
			}
		}
	}
}

func TestHeadersThatNameKeysAreNotFollowed(t *testing.T) {
	s := makeSigners()
	attacker := newECKey(t)
	var asked atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, setOf(t, ecJWK("e", attacker), ecJWK("a", attacker)))
	}))
	defer trap.Close()
	der, err := x509.MarshalPKIXPublicKey(&attacker.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, ecJWK("e", s.ecdsa))
	v := under(t, p.URL, nil)
	signed := func(kid string, key *ecdsa.PrivateKey, name string, member any) string {
		token := jwt.NewWithClaims(jwt.SigningMethodES256, with(nil))
		token.Header["kid"], token.Header[name] = kid, member
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, member := range map[string]any{
		"jku": trap.URL, "x5u": trap.URL, "jwk": ecJWK("e", attacker), "x5c": []string{b64(der)}, "x5t": "x", "x5t#S256": "x", "iss": trap.URL,
	} {
		t.Run(name, func(t *testing.T) {
			for want, token := range map[string]string{
				"denied":         signed("e", attacker, name, member),
				"denied for now": signed("a", attacker, name, member),
				"ok":             signed("e", s.ecdsa, name, member), // whoever signs may write what is ignored
			} {
				if got := verdict(t, v, token); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	for name, member := range map[string]any{"exp": []string{"exp"}, "b64": []string{"b64"}, "an empty list": []string{}, "null": nil, "text": "exp"} {
		t.Run("crit "+name, func(t *testing.T) {
			if got := verdict(t, v, signed("e", s.ecdsa, "crit", member)); got != "denied" {
				t.Errorf("got %s, want a denial", got)
			}
		})
	}
	if asked.Load() != 0 || p.asked() != 1 {
		t.Errorf("requests: %d where the tokens point, %d to the issuer; want none and one", asked.Load(), p.asked())
	}
}

func TestADenialPassesWhenTheTokenMayBeGoodInSomeSeconds(t *testing.T) {
	s := makeSigners()
	stranger := newECKey(t)
	v := under(t, newProvider(t, ecJWK("e", s.ecdsa)).URL, nil)
	soon, past := start.Add(Leeway+time.Minute).Unix(), start.Add(-time.Hour).Unix()
	for name, tc := range map[string]struct{ token, want string }{
		"a key that is not published":             {sign(t, jwt.SigningMethodES256, "x", stranger, with(nil)), "denied for now"},
		"the same without an id":                  {sign(t, jwt.SigningMethodES256, "", stranger, with(nil)), "denied for now"},
		"the same, and not valid yet":             {sign(t, jwt.SigningMethodES256, "x", stranger, with(claims{"nbf": soon})), "denied for now"},
		"not valid yet":                           {sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(claims{"nbf": soon})), "denied for now"},
		"a published key that did not sign it":    {sign(t, jwt.SigningMethodES256, "e", stranger, with(nil)), "denied"},
		"an unknown key of another issuer":        {sign(t, jwt.SigningMethodES256, "x", stranger, with(claims{"iss": "https://else"})), "denied"},
		"an unknown key, for another audience":    {sign(t, jwt.SigningMethodES256, "x", stranger, with(claims{"aud": "else"})), "denied"},
		"an unknown key, expired":                 {sign(t, jwt.SigningMethodES256, "x", stranger, with(claims{"exp": past})), "denied"},
		"a good key, for another audience":        {sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(claims{"aud": "else"})), "denied"},
		"a good key, another organization's form": {sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(claims{"organizationId": "x"})), "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict(t, v, tc.token); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
