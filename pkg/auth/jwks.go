package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// How long keys are used. Nothing refreshes them in the background, because
// Lambda freezes a function between requests: a request that needs fresher keys
// fetches them.
const (
	keysMaxAge    = 10 * time.Minute // keys this old are fetched again
	keysMaxStale  = time.Hour        // keys this old are used while fetching fails
	keysUnknown   = 10 * time.Second // least time between fetches for unknown key ids
	keysRetry     = 5 * time.Second  // least time after a fetch that failed
	keysTimeout   = 3 * time.Second
	keysMaxLength = 1 << 20 // bytes of a JWK Set
	keysMaxCount  = 100     // keys in a JWK Set, each of which a token without a key id is tried with
)

// keySource keeps the keys of one JWKS URL. It fetches them again for an unknown
// key id, so that a rotation takes effect at once. A URL that does not answer is
// our error and never makes a token wrong.
type keySource struct {
	url    string
	client *http.Client
	now    func() time.Time

	current  atomic.Pointer[keySet]
	fetching sync.Mutex // held while fetching; guards failed and failure
	failed   time.Time  // when the last fetch failed, zero when it did not
	failure  error
}

// keySet is one answer of the URL. Sets are compared by identity.
type keySet struct {
	keys    []publicKey
	fetched time.Time // before the request was sent
}

func newKeySource(url string, client *http.Client, now func() time.Time) *keySource {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	// The operator names the URL that is trusted; a redirect would name another.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &keySource{url: url, client: &own, now: now}
}

// find returns the algorithm's keys with the id, or all of them when the token
// names no id.
func (s *keySet) find(id string, algorithm string) []publicKey {
	var found []publicKey
	for _, k := range s.keys {
		if k.algorithm == algorithm && (id == "" || k.id == id) {
			found = append(found, k)
		}
	}
	return found
}

// keys returns the keys to verify with.
func (s *keySource) keys(ctx context.Context) (*keySet, error) {
	set := s.current.Load()
	if set != nil && s.now().Sub(set.fetched) < keysMaxAge {
		return set, nil
	}
	usable := set != nil && s.now().Sub(set.fetched) < keysMaxStale
	if usable && !s.fetching.TryLock() {
		return set, nil // another request is fetching
	}
	if !usable {
		s.fetching.Lock()
	}
	defer s.fetching.Unlock()
	fresh, err := s.fetch(ctx, set)
	if err != nil && usable {
		return set, nil
	}
	return fresh, err
}

// newer returns keys that were fetched after the given ones, or nil when those
// are too fresh to fetch again for an unknown key id.
func (s *keySource) newer(ctx context.Context, than *keySet) (*keySet, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if set := s.current.Load(); set != than {
		return set, nil
	}
	if s.now().Sub(than.fetched) < keysUnknown {
		return nil, nil
	}
	return s.fetch(ctx, than)
}

// fetch requests the keys, unless another request replaced the given ones
// already or a fetch just failed. The caller holds the lock.
func (s *keySource) fetch(ctx context.Context, than *keySet) (*keySet, error) {
	if set := s.current.Load(); set != than {
		return set, nil
	}
	now := s.now()
	if !s.failed.IsZero() && now.Sub(s.failed) < keysRetry {
		return nil, s.failure
	}
	keys, err := s.ask(ctx)
	if err != nil {
		s.failed = s.now()
		s.failure = fault.Busy(fmt.Errorf("fetch the keys of user tokens from %s: %w", s.url, err))
		return nil, s.failure
	}
	s.failed, s.failure = time.Time{}, nil
	set := &keySet{keys: keys, fetched: now}
	s.current.Store(set)
	return set, nil
}

// ask makes the HTTP request. It outlives the caller, whose cancellation must
// not fail the other requests.
func (s *keySource) ask(ctx context.Context) ([]publicKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
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
