package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
)

// credential is the one credential that a request presents: an API key, or a
// bearer token without its scheme.
type credential struct {
	text  string
	isKey bool
}

// Digest names the credential with the text, an API key or a token, without
// giving it away.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// presented returns the credential of a request, which may hold its headers in
// any case. A request with more than one value of a header is denied, whatever
// the values are: API Gateway keeps an answer under one of them, and does not say
// under which. Nobody may keep that denial, since the value may be a good one.
func presented(headers map[string][]string, read bool) (credential, *Denial) {
	authorization, denial := single(headers, "Authorization")
	if denial != nil {
		return credential{}, denial
	}
	wanted := "send a bearer token in the Authorization header: API keys only read /api"
	if read {
		key, denial := single(headers, "X-API-Key")
		if key != "" || denial != nil {
			return credential{text: key, isKey: true}, denial
		}
		wanted = "send an API key in the X-API-Key header or a bearer token in the Authorization header"
	}
	scheme, token, _ := strings.Cut(authorization, " ") // RFC 6750, section 2.1
	token = strings.TrimSpace(token)
	switch {
	case strings.Contains(authorization, ","): // a proxy may have joined two values into one
		return credential{}, denyForNow("the Authorization header must be Bearer, a space and one token")
	case !strings.EqualFold(scheme, "Bearer"):
		return credential{}, deny(wanted)
	case token == "" || strings.ContainsAny(token, " \t"):
		return credential{}, deny("the Authorization header must be Bearer, a space and the token")
	}
	return credential{text: token}, nil
}

// single returns the value of a header, "" where it is absent or blank. Two
// values are denied, blank ones too.
func single(headers map[string][]string, name string) (value string, denial *Denial) {
	count := 0
	for given, values := range headers {
		if len(given) != len(name) || !strings.EqualFold(given, name) {
			continue
		}
		if count += len(values); count > 1 {
			return "", denyForNow("send one " + name + " header")
		}
		for _, v := range values {
			value = strings.TrimSpace(v)
		}
	}
	return value, nil
}

// PrincipalOf reads the principal that the authorizer found for a request. It is
// ErrNoPrincipal when the authorizer judged another credential than the one that
// the request carries: what the gateway keeps is not trusted to be about this request.
func PrincipalOf(context map[string]any, headers http.Header) (Principal, error) {
	p, err := PrincipalFromContext(context)
	if err != nil {
		return Principal{}, err
	}
	c, denial := presented(headers, p.Kind == KindKey)
	if denial != nil || subtle.ConstantTimeCompare([]byte(Digest(c.text)), []byte(p.Credential)) == 0 {
		return Principal{}, ErrNoPrincipal
	}
	return p, nil
}
