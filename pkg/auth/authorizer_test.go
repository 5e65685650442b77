package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/value"
)

// keyShelf is a key store in memory that counts.
type keyShelf struct {
	mu          sync.Mutex
	credentials map[string]account.Credential
	apps        map[value.ID]account.Application
	tokenScopes []string
	grants      map[value.ID]bool
	published   apptoken.Published
	keyReads    int
	lookups     int
	refreshes   int                    // of the look-ups
	frozen      func() *account.Client // what eventually consistent reads of clients answer; nil: what is current
	touches     []value.ID
	err         error
	touchErr    error
	block       chan struct{} // closed to let look-ups go on; nil: they do
}

func newKeyShelf() *keyShelf {
	return &keyShelf{
		credentials: map[string]account.Credential{}, apps: map[value.ID]account.Application{}, tokenScopes: account.ReadScopes(),
	}
}

func (s *keyShelf) Credential(ctx context.Context, textID string) (*account.Credential, *account.Application, error) {
	s.mu.Lock()
	s.lookups++
	block := s.block
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.credentials[textID]
	if s.err != nil || !ok {
		return nil, nil, s.err
	}
	app, ok := s.apps[c.ApplicationID]
	if !ok {
		return &c, nil, nil
	}
	return &c, &app, nil
}

// RefreshCredential answers from the table as it is, not as it was.
func (s *keyShelf) RefreshCredential(ctx context.Context, known *account.Credential) (*account.Credential, *account.Application, error) {
	s.mu.Lock()
	s.refreshes++
	s.mu.Unlock()
	return s.Credential(ctx, known.KeyText)
}

func (s *keyShelf) TouchKey(_ context.Context, c *account.Credential, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touches = append(s.touches, c.KeyID)
	return s.touchErr
}

func (s *keyShelf) Grant(_ context.Context, _, _, id value.ID) (*account.Family, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || !s.grants[id] {
		return nil, s.err
	}
	return &account.Family{}, nil
}

// EventualClient answers with what the shelf held when it was frozen.
func (s *keyShelf) EventualClient(ctx context.Context, organization, application value.ID) (*account.Client, error) {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen != nil {
		s.mu.Lock()
		s.lookups++
		s.mu.Unlock()
		return frozen(), nil
	}
	return s.Client(ctx, organization, application)
}

func (s *keyShelf) Client(_ context.Context, organization, application value.ID) (*account.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	app, ok := s.apps[application]
	if s.err != nil || !ok || app.OrganizationID != organization {
		return nil, s.err
	}
	return &account.Client{Application: &app, TokenScopes: s.tokenScopes}, nil
}

func (s *keyShelf) SigningKeys(context.Context) (apptoken.Published, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyReads++
	return s.published, s.err
}

func (s *keyShelf) PublishSigningKeys(_ context.Context, keys apptoken.Published) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = keys
	return true, nil
}

// change alters what the shelf holds, as another instance would.
func (s *keyShelf) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// harness is an authorizer with one application and a key of it.
type harness struct {
	*Authorizer
	*clock
	shelf      *keyShelf
	app        account.Application
	key        account.CreatedKey
	credential account.Credential
	token      string
	log        bytes.Buffer
}

func newHarness(t testing.TB, dto account.CreateApiKeyDto) *harness {
	t.Helper()
	b := &harness{clock: &clock{}, shelf: newKeyShelf()}
	name := "shop"
	dto.Name = &name
	b.app = account.NewApplication(org, user, account.CreateApplicationDto{Name: &name}, value.TimeOf(start))
	b.app.RateLimit = 1234
	b.key, b.credential = account.NewKey(&b.app, user, dto, value.TimeOf(start))
	b.shelf.apps[b.app.ID], b.shelf.credentials[b.credential.KeyText] = b.app, b.credential
	b.token = hs256(t, nil)
	verifier := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.Clock = b.now })
	b.Authorizer = NewAuthorizer(verifier, b.shelf, AuthorizerConfig{Clock: b.now, Logger: slog.New(slog.NewTextHandler(&b.log, nil))})
	return b
}

func (b *harness) withKey(t *testing.T, key string) string {
	t.Helper()
	_, denial, err := b.Authorize(t.Context(), Request{Read: true, Headers: map[string][]string{"X-API-Key": {key}}})
	return outcomeOf(t, denial, err)
}

func TestWhichHeadersCount(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	bearer, key := "Bearer "+b.token, b.key.Key
	const none, one = "unauthenticated: send a", "unauthenticated: send one Authorization header"
	const (
		keysOnlyRead = "unauthenticated: send a bearer token in the Authorization header: API keys only read /api"
		isKey        = "unauthenticated: the bearer token is an API key: send it in the X-API-Key header"
		isToken      = "unauthenticated: the X-API-Key header has a token: send it in the Authorization header"
	)
	for _, tc := range []struct {
		name            string
		headers         map[string][]string
		developer, read string // outcomes: the principal's kind, or the beginning of a denial
	}{
		{"nothing", nil, none, none},
		{"a token", map[string][]string{"Authorization": {bearer}}, "user", "user"},
		{"names in lower case", map[string][]string{"authorization": {bearer}}, "user", "user"},
		{"the scheme in any case", map[string][]string{"Authorization": {"bEARER  " + b.token + " "}}, "user", "user"},
		{"a key", map[string][]string{"X-API-Key": {key}}, keysOnlyRead, "key"},
		{"a key in lower case", map[string][]string{"x-api-key": {" " + key + " "}}, none, "key"},
		{"both", map[string][]string{"Authorization": {bearer}, "x-api-key": {key}}, "user", "key"},
		{"both, the token bad", map[string][]string{"Authorization": {"Bearer x"}, "X-Api-Key": {key}}, "unauthenticated: the bearer token is not a JWT", "key"},
		{"both, the token missing", map[string][]string{"Authorization": {"Bearer"}, "X-Api-Key": {key}}, "unauthenticated: the Authorization header must be", "key"},
		{"both, two tokens", map[string][]string{"Authorization": {bearer, bearer}, "X-Api-Key": {key}}, one, one},
		{"both, the key bad", map[string][]string{"Authorization": {bearer}, "X-API-Key": {key[:len(key)-1] + "!"}}, "user", "unauthenticated: the API key is not well formed"},
		{"both, two keys", map[string][]string{"Authorization": {bearer}, "X-API-Key": {key, key}}, "user", "unauthenticated: send one X-API-Key header"},
		{"a blank key beside a token", map[string][]string{"Authorization": {bearer}, "X-API-Key": {" "}}, "user", "user"},
		{"another scheme beside a key", map[string][]string{"Authorization": {"Basic eDp5"}, "X-API-Key": {key}}, none, "key"},
		{"another scheme", map[string][]string{"Authorization": {"Basic eDp5"}}, none, none},
		{"a token without scheme", map[string][]string{"Authorization": {b.token}}, none, none},
		{"two tokens", map[string][]string{"Authorization": {bearer, bearer}}, one, one},
		{"two tokens under two names", map[string][]string{"Authorization": {bearer}, "authorization": {bearer}}, one, one},
		{"another scheme before a token", map[string][]string{"Authorization": {"Basic eDp5", bearer}}, one, one},
		{"another scheme after a token", map[string][]string{"Authorization": {bearer, "Basic eDp5"}}, one, one},
		{"a blank value before a token", map[string][]string{"Authorization": {"", bearer}}, one, one},
		{"a blank key before a key", map[string][]string{"X-API-Key": {"", key}}, none, "unauthenticated: send one X-API-Key header"},
		{"two keys", map[string][]string{"X-API-Key": {key, key}}, none, "unauthenticated: send one X-API-Key header"},
		{"two tokens in one", map[string][]string{"Authorization": {bearer + ", " + bearer}}, "unauthenticated: the Authorization header must be", "unauthenticated: the Authorization header must be"},
		{"a token that is a key", map[string][]string{"Authorization": {"Bearer " + key}}, isKey, isKey},
		{"a token that is half a key", map[string][]string{"Authorization": {"Bearer " + key[:30]}}, isKey, isKey},
		{"a key that is a token", map[string][]string{"X-API-Key": {b.token}}, keysOnlyRead, isToken},
		{"a key that is a token with its scheme", map[string][]string{"X-API-Key": {bearer}}, keysOnlyRead, isToken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, area := range []struct {
				read bool
				want string
			}{{false, tc.developer}, {true, tc.read}} {
				p, denial, err := b.Authorize(t.Context(), Request{Headers: tc.headers, Read: area.read})
				got := outcomeOf(t, denial, err)
				if got == "ok" {
					got = string(p.Kind)
				}
				if strings.Contains(got, key[:30]) || strings.Contains(got, b.token) {
					t.Errorf("%s (read %v): the denial repeats the credential: %s", tc.name, area.read, got)
				}
				if !strings.HasPrefix(got, area.want) {
					t.Errorf("%s (read %v): got %s, want %s", tc.name, area.read, got, area.want)
				}
				if mixed := area.want == one || strings.Contains(tc.name, "in one"); mixed && !denial.Passing {
					t.Errorf("%s (read %v): the gateway keeps the denial under a value that may be good", tc.name, area.read)
				}
				if p.Kind == "" {
					continue
				}
				handed := handedOn(&p)
				sent := http.Header{}
				for name, values := range tc.headers {
					sent[http.CanonicalHeaderKey(name)] = values
				}
				if _, err := PrincipalOf(handed, sent); err != nil {
					t.Errorf("%s (read %v): the function refuses what the authorizer accepts", tc.name, area.read)
				}
			}
		})
	}
}

// TestAFunctionServesTheCredentialThatWasJudged holds that an answer which the
// gateway keeps serves nobody else.
func TestAFunctionServesTheCredentialThatWasJudged(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	bearer, key := "Bearer "+b.token, b.key.Key
	for _, tc := range []struct {
		name  string
		of    http.Header // judged
		sent  http.Header
		wants error
	}{
		{"the token", http.Header{"Authorization": {bearer}}, http.Header{"Authorization": {"bearer  " + b.token}}, nil},
		{"the key", http.Header{"X-Api-Key": {key}}, http.Header{"X-Api-Key": {key}, "Authorization": {"Basic eDp5"}}, nil},
		{"no token", http.Header{"Authorization": {bearer}}, http.Header{}, ErrNoPrincipal},
		{"another token", http.Header{"Authorization": {bearer}}, http.Header{"Authorization": {bearer + "x"}}, ErrNoPrincipal},
		{"another token beside it", http.Header{"Authorization": {bearer}}, http.Header{"Authorization": {bearer, bearer + "x"}}, ErrNoPrincipal},
		{"a proxy's header before it", http.Header{"Authorization": {bearer}}, http.Header{"Authorization": {"Basic eDp5", bearer}}, ErrNoPrincipal},
		{"a key in its place", http.Header{"Authorization": {bearer}}, http.Header{"X-Api-Key": {key}}, ErrNoPrincipal},
		{"another key", http.Header{"X-Api-Key": {key}}, http.Header{"X-Api-Key": {key + "x"}}, ErrNoPrincipal},
		{"a token in place of a key", http.Header{"X-Api-Key": {key}}, http.Header{"Authorization": {bearer}}, ErrNoPrincipal},
		{"two keys", http.Header{"X-Api-Key": {key}}, http.Header{"X-Api-Key": {key, key}}, ErrNoPrincipal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, denial, err := b.Authorize(t.Context(), Request{Headers: tc.of, Read: true})
			if denial != nil || err != nil {
				t.Fatal(denial, err)
			}
			handed := handedOn(&p)
			if got, err := PrincipalOf(handed, tc.sent); !errors.Is(err, tc.wants) {
				t.Errorf("got %+v, %v, want %v", got, err, tc.wants)
			}
			delete(handed, contextCredential)
			if got, err := PrincipalOf(handed, tc.of); !errors.Is(err, ErrNoPrincipal) {
				t.Errorf("without the digest: got %+v, %v, want %v", got, err, ErrNoPrincipal)
			}
		})
	}
}

func TestAKeysPrincipal(t *testing.T) {
	expires := value.TimeOf(start.Add(time.Hour))
	b := newHarness(t, account.CreateApiKeyDto{Scopes: &[]string{"orders:read"}, SiteIDs: &[]value.ID{siteA}, ExpiresAt: &expires})
	got, denial, err := b.Authorize(t.Context(), Request{Read: true, Headers: map[string][]string{"X-API-Key": {b.key.Key}}})
	if denial != nil || err != nil {
		t.Fatal(denial, err)
	}
	want := Principal{
		Kind: KindKey, OrganizationID: org, ApplicationID: b.app.ID, KeyID: b.key.ID, Scopes: Scopes{OrdersRead},
		SiteIDs: []value.ID{siteA}, RateLimit: 1234, ExpiresAt: start.Add(time.Hour), Credential: Digest(b.key.Key),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
}

func TestAKeyIsRefusedForWhatItIs(t *testing.T) {
	expires := value.TimeOf(start.Add(time.Hour))
	for _, tc := range []struct {
		name   string
		change func(*harness)
		want   string
	}{
		{"nothing wrong", func(*harness) {}, "ok"},
		{"just before it expires", func(b *harness) { b.forward(time.Hour - time.Millisecond) }, "ok"},
		{"expired", func(b *harness) { b.forward(time.Hour) }, "api_key_expired: "},
		{"revoked", func(b *harness) {
			b.credential.Revoked = true
			b.shelf.credentials[b.credential.KeyText] = b.credential
		}, "api_key_revoked: "},
		{"suspended", func(b *harness) {
			b.app.Status = account.Suspended
			b.shelf.apps[b.app.ID] = b.app
		}, "application_suspended: "},
		{"its application deleted", func(b *harness) { delete(b.shelf.apps, b.app.ID) }, "unauthenticated: "},
		{"its credential gone", func(b *harness) { clear(b.shelf.credentials) }, "unauthenticated: "},
		{"revoked, but another key with its id", func(b *harness) {
			b.credential.Revoked, b.credential.Hash = true, account.HashSecret("another")
			b.shelf.credentials[b.credential.KeyText] = b.credential
		}, "unauthenticated: the API key is not known"},
		{"the table out of reach", func(b *harness) { b.shelf.err = errors.New("no answer") }, "error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newHarness(t, account.CreateApiKeyDto{ExpiresAt: &expires})
			tc.change(b)
			if got := b.withKey(t, b.key.Key); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAKeyWithABadChecksumIsNotLookedUp(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	for _, key := range []string{"x", "cis_live_", b.key.Key[:54], b.key.Key + "x", b.key.Key[:30] + "-" + b.key.Key[31:], strings.ToUpper(b.key.Key)} {
		t.Run(key, func(t *testing.T) {
			if got := b.withKey(t, key); !strings.HasPrefix(got, "unauthenticated: the API key is not well formed") {
				t.Errorf("%q: got %s", key, got)
			}
		})
	}
	if b.shelf.lookups != 0 {
		t.Errorf("look-ups: got %d, want none", b.shelf.lookups)
	}
}

func TestEndsActWithinFiveSeconds(t *testing.T) {
	suspend := func(b *harness) { b.app.Status = account.Suspended; b.shelf.apps[b.app.ID] = b.app }
	remove := func(b *harness) { delete(b.shelf.apps, b.app.ID) }
	for name, tc := range map[string]struct {
		token  bool // of the application; a key otherwise
		change func(*harness)
		want   string
	}{
		"a revoked key": {false, func(b *harness) {
			b.credential.Revoked = true
			b.shelf.credentials[b.credential.KeyText] = b.credential
		}, "api_key_revoked: "},
		"a key of a suspended application":   {false, suspend, "application_suspended: "},
		"a key of a deleted application":     {false, remove, "unauthenticated: "},
		"a token of a suspended one":         {true, suspend, "application_suspended: "},
		"a token of a deleted one":           {true, remove, "unauthenticated: the application of the bearer token was deleted"},
		"a token of one of another tenant's": {true, func(b *harness) { b.app.OrganizationID = value.NewID(); b.shelf.apps[b.app.ID] = b.app }, "unauthenticated: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, account.CreateApiKeyDto{})
			token := b.give(t, b.signer(oneSecret, ""), "orders:read")
			outcome := func() string {
				if tc.token {
					_, got := b.withToken(t, token)
					return got
				}
				return b.withKey(t, b.key.Key)
			}
			for range 10 {
				if got := outcome(); got != "ok" {
					t.Fatalf("before: got %s", got)
				}
				b.forward(300 * time.Millisecond)
			}
			if b.shelf.lookups != 1 {
				t.Errorf("look-ups in 3 s: got %d, want 1", b.shelf.lookups)
			}
			b.shelf.change(func() { tc.change(b) })
			b.forward(5*time.Second - 10*time.Millisecond)
			if got := outcome(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("5 s after: got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAKeyWorksAfterItWasUnknownAndAfterAFailureAtOnce(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	kept := b.shelf.credentials
	b.shelf.credentials = map[string]account.Credential{}
	if got := b.withKey(t, b.key.Key); got == "ok" {
		t.Fatal("an unknown key was accepted")
	}
	b.forward(recentMaxAge)
	b.shelf.credentials, b.shelf.err = kept, errors.New("no answer")
	if got := b.withKey(t, b.key.Key); got != "error" {
		t.Errorf("got %s, want an error", got)
	}
	b.shelf.err = nil
	if got := b.withKey(t, b.key.Key); got != "ok" {
		t.Errorf("got %s, want ok", got)
	}
}

func TestOneLookUpServesAllWhoWait(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	b.shelf.block = make(chan struct{})
	cancelled, cancel := context.WithCancel(t.Context())
	request := Request{Read: true, Headers: map[string][]string{"X-API-Key": {b.key.Key}}}
	var group sync.WaitGroup
	group.Go(func() {
		// The first to come does the look-up, and goes away meanwhile.
		if _, _, err := b.Authorize(cancelled, request); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; {
		b.shelf.mu.Lock()
		started := b.shelf.lookups == 1
		b.shelf.mu.Unlock()
		if started {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no look-up")
		}
		runtime.Gosched()
	}
	cancel()
	for range 20 {
		group.Go(func() {
			if _, denial, err := b.Authorize(t.Context(), request); denial != nil || err != nil {
				t.Error(denial, err)
			}
		})
	}
	gone, goneCancel := context.WithCancel(t.Context())
	goneCancel()
	if _, _, err := b.Authorize(gone, request); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no longer: got %v, want context.Canceled", err)
	}
	close(b.shelf.block)
	group.Wait()
	if b.shelf.lookups != 1 {
		t.Errorf("look-ups: got %d, want 1", b.shelf.lookups)
	}
}

func TestTheLastUseIsWrittenOnceInTenMinutesAndNeverFailsARequest(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	b.shelf.touchErr = errors.New("no answer")
	for range 61 {
		if got := b.withKey(t, b.key.Key); got != "ok" {
			t.Fatalf("got %s, want ok", got)
		}
		b.forward(30 * time.Second)
	}
	if want := []value.ID{b.key.ID, b.key.ID, b.key.ID, b.key.ID}; cmp.Diff(want, b.shelf.touches) != "" {
		t.Errorf("last uses written in 30 minutes: got %v, want %v", b.shelf.touches, want)
	}
	if log := b.log.String(); strings.Count(log, "last use") != 4 || strings.Contains(log, b.key.Key) {
		t.Errorf("log: got %s, want four warnings without the key", log)
	}
	if got := newHarness(t, account.CreateApiKeyDto{}); got.withKey(t, b.key.Key) == "ok" || len(got.shelf.touches) != 0 {
		t.Error("a refused key was touched")
	}
}

func TestALastUseThatTheCredentialTellsIsNotWrittenAgain(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	b.credential.LastUsedAt = value.TimeOf(start) // by another instance
	b.shelf.credentials[b.credential.KeyText] = b.credential
	b.forward(touchInterval - time.Millisecond)
	if got := b.withKey(t, b.key.Key); got != "ok" || len(b.shelf.touches) != 0 {
		t.Errorf("just before it is due: got %s and %d touches, want none", got, len(b.shelf.touches))
	}
	b.forward(time.Millisecond)
	if got := b.withKey(t, b.key.Key); got != "ok" || len(b.shelf.touches) != 1 {
		t.Errorf("when it is due: got %s and %d touches, want one", got, len(b.shelf.touches))
	}
}

func TestAKnownKeyIsReadWithItsApplicationAtOnce(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	for range 3 {
		if got := b.withKey(t, b.key.Key); got != "ok" {
			t.Fatalf("got %s, want ok", got)
		}
		b.forward(recentMaxAge)
	}
	if b.shelf.lookups != 3 || b.shelf.refreshes != 2 {
		t.Errorf("got %d look-ups, %d of them of a known key, want 3 and 2", b.shelf.lookups, b.shelf.refreshes)
	}
}

func TestTheCacheOfKeysIsBounded(t *testing.T) {
	shelf := newKeyShelf()
	c := newKeyCache(shelf, func() time.Time { return start })
	for i := range 3 * maxRecent {
		if _, err := c.get(t.Context(), string(rune(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ key, reads int }{{3 * maxRecent, 0}, {1, 1}} { // the latest and the first
		before := shelf.lookups
		if _, err := c.get(t.Context(), string(rune(row.key))); err != nil || shelf.lookups != before+row.reads {
			t.Errorf("key %d: %d more look-ups, %v, want %d", row.key, shelf.lookups-before, err, row.reads)
		}
	}
}

func TestADenialTellsWhoseGenuineCredentialItRefuses(t *testing.T) {
	later := value.TimeOf(start.Add(time.Minute))
	for name, test := range map[string]struct {
		change  func(*harness)
		header  func(*harness) (name, text string)
		of      func(*harness) Principal // the identifiers
		keyText bool
	}{
		"a revoked key":                    {func(b *harness) { b.credential.Revoked = true }, (*harness).keyHeader, (*harness).keyOwner, true},
		"an expired key":                   {func(b *harness) { b.credential.ExpiresAt = &later; b.forward(time.Hour) }, (*harness).keyHeader, (*harness).keyOwner, true},
		"a key of a suspended application": {func(b *harness) { b.app.Status = account.Suspended }, (*harness).keyHeader, (*harness).keyOwner, true},
		"a key whose secret part is wrong": {func(b *harness) { b.credential.Hash = account.Hash{} }, (*harness).keyHeader, nobody, true},
		"a key that is not well formed":    {func(b *harness) { b.key.Key = b.key.Key[:54] + "_" }, (*harness).keyHeader, nobody, false},
		"an expired token": {func(b *harness) { b.forward(2 * time.Hour) }, (*harness).tokenHeader, func(*harness) Principal {
			return Principal{Kind: KindUser, OrganizationID: org, UserID: user}
		}, false},
		"an expired token with a wrong signature": {func(b *harness) { b.forward(2 * time.Hour); b.token = b.token[:len(b.token)-8] + "AAAAAAAA" }, (*harness).tokenHeader, nobody, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, account.CreateApiKeyDto{})
			test.change(b)
			b.shelf.apps[b.app.ID], b.shelf.credentials[b.credential.KeyText] = b.app, b.credential
			header, text := test.header(b)
			_, denial, err := b.Authorize(t.Context(), Request{Read: true, Headers: map[string][]string{header: {text}}})
			if err != nil || denial == nil {
				t.Fatalf("got %v, %v, want a denial", denial, err)
			}
			got := Principal{Kind: denial.Of.Kind, OrganizationID: denial.Of.OrganizationID, UserID: denial.Of.UserID, ApplicationID: denial.Of.ApplicationID, KeyID: denial.Of.KeyID}
			keyText := ""
			if test.keyText {
				keyText = b.credential.KeyText
			}
			if diff := cmp.Diff(test.of(b), got); diff != "" || denial.KeyText != keyText {
				t.Errorf("%s: of (-want +got):\n%s\nkey %q, want %q", denial.Code, diff, denial.KeyText, keyText)
			}
		})
	}
}

func (b *harness) keyHeader() (name, text string)   { return "X-API-Key", b.key.Key }
func (b *harness) tokenHeader() (name, text string) { return "Authorization", "Bearer " + b.token }
func (b *harness) keyOwner() Principal {
	return Principal{Kind: KindKey, OrganizationID: org, ApplicationID: b.app.ID, KeyID: b.key.ID}
}
func nobody(*harness) Principal { return Principal{} }
