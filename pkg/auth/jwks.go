package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	keysMaxLength = 1 << 20 // bytes of a JWK Set
	keysMaxCount  = 100     // keys in a JWK Set, each of which a token without a key id is tried with
)

// jwks asks a URL for the keys of an issuer.
type jwks struct {
	url    string
	client *http.Client
}

// newKeySource keeps the keys of the URL. It asks again for an unknown key id, so
// that a rotation takes effect at once.
func newKeySource(url string, client *http.Client, now func() time.Time) *source[[]publicKey] {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	// The operator names the URL that is trusted; a redirect would name another.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &source[[]publicKey]{
		what: "the keys of user tokens from " + url, read: jwks{url, &own}.fetch, now: now,
		ages: ages{fresh: 10 * time.Minute, stale: time.Hour, unknown: 10 * time.Second, failed: 5 * time.Second},
	}
}

func (j jwks) fetch(ctx context.Context) ([]publicKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := j.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, keysMaxLength+1))
	if err != nil {
		return nil, err
	}
	if len(body) > keysMaxLength {
		return nil, errors.New("the JWK Set is longer than 1 MiB")
	}
	return parseKeySet(body)
}
