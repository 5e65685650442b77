package auth

import (
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth/apptoken"
)

// SigningKeyStore reads the public keys of application tokens.
type SigningKeyStore interface {
	SigningKeys(ctx context.Context) (apptoken.Published, error)
}

// publishedSkew is how far the clocks of two instances may differ.
const publishedSkew = time.Minute

var publishedAges = ages{fresh: time.Minute, unknown: time.Second}

// publishedKeys keeps the public keys of application tokens by their ids. A key is
// published before anything is signed with it, so that keys that were read after a
// token was made settle whether its key exists.
type publishedKeys struct {
	*source[map[string]*ecdsa.PublicKey]
}

func newPublishedKeys(store SigningKeyStore, now func() time.Time) publishedKeys {
	read := func(ctx context.Context) (map[string]*ecdsa.PublicKey, error) {
		published, err := store.SigningKeys(ctx)
		if err != nil {
			return nil, err
		}
		keys := make(map[string]*ecdsa.PublicKey, len(published.Keys))
		for _, key := range published.Keys {
			if keys[key.Kid], err = key.Public(); err != nil {
				return nil, err
			}
		}
		return keys, nil
	}
	return publishedKeys{&source[map[string]*ecdsa.PublicKey]{what: "the signing keys", read: read, now: now, ages: publishedAges}}
}

var errReadTooOften = errors.New("auth: the signing keys were read just now, for another unknown key id")

// find returns the key with the id of a token that says that it was made at
// the time issued. It fails with errNoKey when the key does not exist, and with
// errReadTooOften when that cannot be told yet: then nothing may be cached.
func (k publishedKeys) find(ctx context.Context, id string, issued time.Time) (*ecdsa.PublicKey, error) {
	began := k.now()
	keys, err := k.get(ctx)
	if err != nil {
		return nil, err
	}
	if keys.value[id] == nil && keys.at.Before(began) && keys.at.Sub(issued) < publishedSkew {
		before := keys
		if keys, err = k.newer(ctx, before); err != nil {
			return nil, err
		}
		if keys == before {
			return nil, errReadTooOften
		}
	}
	if key := keys.value[id]; key != nil {
		return key, nil
	}
	return nil, errNoKey
}

// applicationTokens checks the tokens of applications.
type applicationTokens struct {
	verifier *apptoken.Verifier
	keys     publishedKeys
}

// isApplicationToken reports whether the token's header names a key of
// application tokens. Whatever it is, only those keys can verify it then.
func isApplicationToken(token string) bool {
	text, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(token) > maxTokenLength {
		return false
	}
	var header struct {
		Kid string `json:"kid"`
	}
	return json.Unmarshal(raw, &header) == nil && apptoken.IsKeyID(header.Kid)
}

// verify checks the token and returns its application as the token describes
// it.
func (a *applicationTokens) verify(ctx context.Context, token string) (Principal, *Denial, error) {
	claims, err := a.verifier.Verify(token, func(id string, issued time.Time) (*ecdsa.PublicKey, error) {
		return a.keys.find(ctx, id, issued)
	})
	if err != nil {
		denial, err := denialOf(err)
		return Principal{}, denial, err
	}
	p := Principal{
		Kind: KindApplication, OrganizationID: claims.OrganizationID, ApplicationID: claims.ApplicationID,
		Scopes: ParseScopes(claims.Scope), ExpiresAt: claims.ExpiresAt.Time,
	}
	if user := claims.User; user != nil {
		p.UserID, p.GrantID, p.SiteIDs = user.UserID, user.GrantID, user.SiteIDs
	}
	return p, nil, nil
}
