package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// Leeway is how far the clocks of an issuer and of the service may differ.
	Leeway = 30 * time.Second
	// UserRateLimit is the requests per 60 s of a user.
	UserRateLimit = 600
	// OrganizationRateLimit is the requests per 60 s of an organization, over all
	// its applications and users, where the operator sets none.
	OrganizationRateLimit = 6000
	// MinSecret is the shortest HS256 secret in bytes (RFC 7518, section 3.2).
	MinSecret = 32

	maxTokenLength = 16 << 10
)

// VerifierConfig says which user tokens are accepted. Issuer, Audience and
// Clock are required, and at least one of JWKSURL, HS256Secret and HS256Secrets.
type VerifierConfig struct {
	Issuer      string
	Audience    string
	JWKSURL     string // keys of RS256, ES256 and EdDSA
	HS256Secret string // at least MinSecret bytes
	// HS256Secrets reads the secrets in the place of HS256Secret when they are
	// first needed, and again every five minutes or when a signature is of none
	// of them. A secret under MinSecret bytes is an error for HS256 tokens, and
	// harms no other credential.
	HS256Secrets      SharedSecrets
	OrganizationClaim string       // default organizationId
	DefaultRole       Role         // of tokens with neither roles nor scope; default DEVELOPER
	Client            *http.Client // for JWKSURL
	Clock             func() time.Time
}

// Verifier checks user JWTs. It is safe for concurrent use.
type Verifier struct {
	cfg       VerifierConfig
	keys      *source[[]publicKey] // nil without a JWKS URL
	shared    *source[[]string]    // nil without HS256
	parser    *jwt.Parser
	validator *jwt.Validator // of the registered claims
}

// NewVerifier makes a verifier; an error names the fault in cfg.
func NewVerifier(cfg VerifierConfig) (*Verifier, error) {
	if cfg.OrganizationClaim == "" {
		cfg.OrganizationClaim = "organizationId"
	}
	if cfg.DefaultRole == "" {
		cfg.DefaultRole = DeveloperRole
	}
	switch {
	case cfg.Issuer == "" || cfg.Audience == "":
		return nil, errors.New("auth: issuer and audience of user tokens must be set")
	case cfg.JWKSURL == "" && cfg.HS256Secret == "" && cfg.HS256Secrets == nil:
		return nil, errors.New("auth: a JWKS URL or an HS256 secret must be set")
	case cfg.HS256Secret != "" && len(cfg.HS256Secret) < MinSecret:
		return nil, checkSecrets([]string{cfg.HS256Secret})
	case !safeText(cfg.OrganizationClaim):
		return nil, fmt.Errorf("auth: the name of the organization claim, %q, has characters other than letters, digits and .:/_-", cfg.OrganizationClaim)
	case len(cfg.DefaultRole.Scopes()) == 0:
		return nil, fmt.Errorf("auth: the default role %q is none of OWNER, ADMIN, DEVELOPER, VIEWER", cfg.DefaultRole)
	}
	v := &Verifier{cfg: cfg}
	var methods []string
	if cfg.JWKSURL != "" {
		v.keys = newKeySource(cfg.JWKSURL, cfg.Client, cfg.Clock)
		methods = append(methods, algRS256, algES256, algEdDSA)
	}
	if cfg.HS256Secret != "" {
		cfg.HS256Secrets = func(context.Context) ([]string, error) { return []string{cfg.HS256Secret}, nil }
	}
	if cfg.HS256Secrets != nil {
		v.shared = newSecretSource(cfg.HS256Secrets, cfg.Clock)
		methods = append(methods, algHS256)
	}
	rules := []jwt.ParserOption{
		jwt.WithValidMethods(methods), jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(Leeway), jwt.WithTimeFunc(cfg.Clock), jwt.WithStrictDecoding(),
	}
	v.parser, v.validator = jwt.NewParser(rules...), jwt.NewValidator(rules...)
	return v, nil
}

// Verify checks the token and returns its user. A token that is not acceptable
// is a denial; an error means that the keys could not be fetched.
func (v *Verifier) Verify(ctx context.Context, token string) (Principal, *Denial, error) {
	if len(token) > maxTokenLength {
		return Principal{}, deny("the bearer token is longer than 16 KiB"), nil
	}
	claims, err := v.verified(ctx, token)
	switch {
	case errors.Is(err, errNoKey) && v.mayBeOurs(claims):
		return Principal{}, denyForNow("the bearer token is not signed with a key that the issuer has published"), nil
	case err != nil:
		denial, err := denialOf(err)
		if denial != nil && denial.Code == CodeTokenExpired {
			// Its signature is right: the parser looks at that before the times.
			denial.Of, _ = v.principal(claims)
		}
		return Principal{}, denial, err
	}
	p, denial := v.principal(claims)
	return p, denial, nil
}

// errNoKey means that no key fits the token; one of a newer set might.
var errNoKey = errors.New("auth: no key for the token")

// mayBeOurs reports whether a token with the claims would be good if the issuer
// published its key. Another issuer's never will be.
func (v *Verifier) mayBeOurs(claims jwt.MapClaims) bool {
	err := v.validator.Validate(claims)
	return err == nil || errors.Is(err, jwt.ErrTokenNotValidYet)
}

// used are the readings that a token was checked with; nil: it needed none.
type used struct {
	keys   *sourced[[]publicKey]
	shared *sourced[[]string]
}

// verified checks the signature and the registered claims. It reads the keys
// again when a newer key may have signed the token. Claims that it returns with
// errNoKey are not verified.
func (v *Verifier) verified(ctx context.Context, token string) (jwt.MapClaims, error) {
	var u used
	claims, err := v.parse(ctx, token, &u)
	again := false
	switch {
	case u.shared != nil && errors.Is(err, jwt.ErrTokenSignatureInvalid):
		newer, readErr := v.shared.newer(ctx, u.shared)
		again = readErr == nil && newer != u.shared
	case errors.Is(err, errNoKey):
		newer, readErr := v.keys.newer(ctx, u.keys)
		if readErr != nil {
			return nil, readErr
		}
		again = newer != u.keys
	}
	if again {
		return v.parse(ctx, token, &u)
	}
	return claims, err
}

// parse verifies the token. The algorithm decides which keys may verify it:
// HS256 only the secrets, the others only public keys of their own type.
func (v *Verifier) parse(ctx context.Context, token string, u *used) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	anonymous := false
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errors.New("auth: critical header parameters are not supported")
		}
		if t.Method.Alg() == algHS256 {
			return v.secrets(ctx, u)
		}
		id, named := t.Header["kid"].(string)
		if !named && t.Header["kid"] != nil {
			return nil, errors.New("auth: the key id is not a string")
		}
		anonymous = id == ""
		return v.publicKeys(ctx, u, id, t.Method.Alg())
	})
	if anonymous && errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		return claims, errors.Join(errNoKey, err)
	}
	return claims, err
}

// secrets are the keys of HS256, of which the parser tries one after the other.
func (v *Verifier) secrets(ctx context.Context, u *used) (set jwt.VerificationKeySet, err error) {
	if u.shared, err = v.shared.get(ctx); err != nil {
		return set, err
	}
	for _, secret := range u.shared.value {
		set.Keys = append(set.Keys, []byte(secret))
	}
	return set, nil
}

func (v *Verifier) publicKeys(ctx context.Context, u *used, id, algorithm string) (set jwt.VerificationKeySet, err error) {
	if u.keys, err = v.keys.get(ctx); err != nil {
		return set, err
	}
	for _, k := range u.keys.value {
		if k.algorithm == algorithm && (id == "" || k.id == id) {
			set.Keys = append(set.Keys, k.key)
		}
	}
	if len(set.Keys) == 0 {
		return set, errNoKey
	}
	return set, nil
}

// denialOf turns the parser's error into a denial, unless it is ours: a fault,
// because the keys could not be fetched.
func denialOf(err error) (*Denial, error) {
	if ours, ok := fault.As(err); ok {
		return nil, ours
	}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return deny("the bearer token is not a JWT"), nil
	case errors.Is(err, errReadTooOften): // made-up key ids must not cause a 5xx
		return denyForNow("the bearer token is not signed with a key that the service is known to have; send it again in a second"), nil
	case errors.Is(err, errNoKey), errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable):
		return deny("the bearer token is not signed with an accepted algorithm and key"), nil
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return deny("the bearer token is from another issuer"), nil
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return deny("the bearer token is for another audience"), nil
	case errors.Is(err, jwt.ErrTokenExpired):
		return &Denial{Code: CodeTokenExpired, Message: "the bearer token has expired; get a new one"}, nil
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return denyForNow("the bearer token is not valid yet"), nil
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return deny("the bearer token must have the claims iss, aud and exp"), nil
	}
	return deny("the bearer token has a claim of a wrong type"), nil
}

// userNamespace is the namespace of the ids of users whose sub is not a UUID.
// It must never change: the ids are stored.
func userNamespace() value.ID { return value.MustID("8f1c6f0e-51a5-4c0d-9c0e-2b7d3a4f6e19") }

// principal reads the claims of a token whose signature and times are right.
func (v *Verifier) principal(claims jwt.MapClaims) (Principal, *Denial) {
	sub, ok := claims["sub"].(string)
	if !ok || sub == "" {
		return Principal{}, deny("the bearer token must have the claim sub, a string")
	}
	user, err := value.ParseID(sub)
	if err != nil {
		user = value.DeriveID(userNamespace(), v.cfg.Issuer+"\n"+sub)
	}
	text, _ := claims[v.cfg.OrganizationClaim].(string)
	organization, err := value.ParseID(text)
	if err != nil || organization.IsZero() {
		return Principal{}, deny("the bearer token must have the claim " + v.cfg.OrganizationClaim + ", a UUID")
	}
	scopes, denial := v.scopes(claims)
	if denial != nil {
		return Principal{}, denial
	}
	sites, denial := siteClaim(claims)
	if denial != nil {
		return Principal{}, denial
	}
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil {
		return Principal{}, deny("the bearer token must have the claim exp, a number")
	}
	return Principal{
		Kind: KindUser, OrganizationID: organization, UserID: user, Scopes: scopes, SiteIDs: sites,
		RateLimit: UserRateLimit, ExpiresAt: expires.Add(Leeway),
	}, nil
}

// scopes reads the roles and scope claims. A claim that is null counts as given
// and grants nothing: an issuer that writes null for a user without roles must
// not give them the default role.
func (v *Verifier) scopes(claims jwt.MapClaims) (Scopes, *Denial) {
	rolesClaim, hasRoles := claims["roles"]
	roles, ok := texts(rolesClaim)
	if !ok {
		return nil, deny("the claim roles of the bearer token must be an array of strings")
	}
	scopeClaim, hasScope := claims["scope"]
	scope, ok := scopeClaim.(string)
	if !ok && scopeClaim != nil {
		return nil, deny("the claim scope of the bearer token must be a string")
	}
	return scopesOf(roles, hasRoles, scope, hasScope, v.cfg.DefaultRole), nil
}

// siteClaim reads the siteIds claim; absent means every site. Null and an empty
// list are refused, because they could mean every site or none.
func siteClaim(claims jwt.MapClaims) ([]value.ID, *Denial) {
	claim, given := claims["siteIds"]
	if !given {
		return nil, nil
	}
	list, ok := texts(claim)
	if !ok || len(list) == 0 {
		return nil, deny("the claim siteIds of the bearer token must be an array of UUIDs that is not empty")
	}
	if len(list) > MaxSites {
		return nil, deny("the claim siteIds of the bearer token names more than 100 sites")
	}
	sites := make([]value.ID, len(list))
	for i, text := range list {
		var err error
		if sites[i], err = value.ParseID(text); err != nil {
			return nil, deny("the claim siteIds of the bearer token must be an array of UUIDs")
		}
	}
	slices.SortFunc(sites, value.ID.Compare)
	return slices.Compact(sites), nil
}

// texts reads an array of strings, or one string as an array of one; nil is
// an empty array.
func texts(claim any) ([]string, bool) {
	switch c := claim.(type) {
	case nil:
		return nil, true
	case string:
		return []string{c}, true
	case []any:
		list := make([]string, len(c))
		for i, element := range c {
			text, ok := element.(string)
			if !ok {
				return nil, false
			}
			list[i] = text
		}
		return list, true
	}
	return nil, false
}
