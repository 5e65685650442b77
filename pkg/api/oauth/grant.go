package oauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
)

// GrantStore keeps what users granted.
type GrantStore interface {
	// CreateGrant may answer a fault limit_reached.
	CreateGrant(ctx context.Context, f *account.Family) error
	// Grant returns nil when there is none.
	Grant(ctx context.Context, organization, application, id value.ID) (*account.Family, error)
	// ReplaceGrant reports whether it stored what was made of the grant that was
	// read: not when another request was faster.
	ReplaceGrant(ctx context.Context, f *account.Family) (bool, error)
	DeleteGrant(ctx context.Context, g *account.Grant, by *account.AuditEntry) (bool, error)
}

// maxExchanges bounds how often a grant is read anew because another request was
// faster.
const maxExchanges = 5

func invalidGrant(description string) *refusal {
	return &refusal{code: "invalid_grant", description: description}
}

func unknownGrant() *refusal {
	return invalidGrant("the code or the refresh token is not known to this client, has ended, or was asked for with another " +
		"code_verifier or redirect_uri")
}

// present gives a family the code or the refresh token of a form.
type present func(*account.Family) (refresh string, err error)

// presentedIn reads the text that names a grant, and how the grant takes it.
func (a *area) presentedIn(form map[string]string) (text string, take present, err error) {
	if form["grant_type"] == refreshToken {
		if text = form["refresh_token"]; text == "" {
			return "", nil, invalidRequest("refresh_token is required")
		}
		return text, func(f *account.Family) (string, error) { return f.Rotate(text, a.now()) }, nil
	}
	if form["grant_type"] == portalSession {
		if text = form["code"]; text == "" {
			return "", nil, invalidRequest("code is required")
		}
		return text, func(f *account.Family) (string, error) { return "", f.Open(text, a.now()) }, nil
	}
	if text = form["code"]; text == "" || form["code_verifier"] == "" {
		return "", nil, invalidRequest("code and code_verifier are required")
	}
	return text, func(f *account.Family) (string, error) {
		return f.Exchange(text, form["code_verifier"], form["redirect_uri"], a.now())
	}, nil
}

// grantedToken answers a code or a refresh token. The client is not proven where
// it is public: only a genuine text lets its request count against the
// application's limit, and any other counts as a wrong secret does.
func (a *area) grantedToken(r *api.Request, client *account.Client, form map[string]string) (token Token, err error) {
	text, take, err := a.presentedIn(form)
	if err != nil {
		return Token{}, err
	}
	app := client.Application
	id, err := account.GrantOf(text)
	if err != nil {
		return Token{}, a.wrong(r, client, unknownGrant())
	}
	admitted := false
	err = retry.Contended(r.Context(), maxExchanges, func() (done bool, err error) {
		family, err := a.store.Grant(r.Context(), app.OrganizationID, app.ID, id)
		switch {
		case err != nil:
			return true, err
		case family == nil, family.Public != client.Public: // what was got with a secret needs one
			return true, a.wrong(r, client, unknownGrant())
		}
		refresh, taken := take(family)
		if errors.Is(taken, account.ErrNotOfFamily) {
			return true, a.wrong(r, client, unknownGrant())
		}
		if !admitted {
			if err := a.admit(r, app); err != nil {
				return true, err
			}
			admitted = true
		}
		switch {
		case errors.Is(taken, account.ErrReused):
			if _, err := a.store.DeleteGrant(r.Context(), &family.Grant, r.ChangeBy(audit.GrantRevoked, app.ID, id)); err != nil {
				return true, err
			}
			return true, invalidGrant("the code or the refresh token was used before, so the grant has ended: ask the user again")
		case errors.Is(taken, account.ErrRepeated):
			token, err = a.answerAgain(family)
			return true, err
		}
		if token, err = a.tokenOf(r, client, family, form["scope"]); err != nil {
			return true, err
		}
		token.RefreshToken = refresh
		r.Principal.UserID, r.Principal.GrantID = family.UserID, id // for the log
		if refresh != "" {                                          // by which it can be asked for again
			if family.Answer, err = a.sealAnswer(family, token); err != nil {
				return true, err
			}
		}
		return a.store.ReplaceGrant(r.Context(), family)
	})
	return token, err
}

// tokenOf makes an access token of the grant, as far as the application's tokens
// may have its scopes now. Some clients ask again for scopes that the user left out.
// A portal session has one token, until it ends.
func (a *area) tokenOf(r *api.Request, client *account.Client, f *account.Family, asked string) (Token, error) {
	scopes, lifetime := auth.ScopesNamed(f.Scopes), f.ExpiresAt.Std().Sub(a.now().Std())
	if !f.OfPortal() {
		scopes, lifetime = scopes.Intersect(auth.ScopesNamed(client.TokenScopes)), apptoken.Lifetime
	}
	if asked := auth.ParseScopes(asked); len(asked) > 0 {
		scopes = scopes.Intersect(asked)
	}
	if len(scopes) == 0 {
		return Token{}, &refusal{code: codeInvalidScope, description: "the grant has none of the scopes, or the application's tokens may not have them"}
	}
	user := &apptoken.ForUser{UserID: f.UserID, GrantID: f.ID}
	if f.SiteIDs != nil {
		user.SiteIDs = *f.SiteIDs
	}
	return a.sign(r, client.Application, scopes.String(), user, lifetime)
}

func sealPurpose(f *account.Family) string { return "grant " + f.ID.String() }

func (a *area) sealAnswer(f *account.Family, token Token) ([]byte, error) {
	plain, err := json.Marshal(token)
	return a.cfg.Answers.SealBytes(plain, sealPurpose(f)), err
}

// answerAgain answers what the request before got: its answer may have been lost.
func (a *area) answerAgain(f *account.Family) (token Token, err error) {
	plain, err := a.cfg.Answers.OpenBytes(f.Answer, sealPurpose(f))
	if err == nil {
		err = json.Unmarshal(plain, &token)
	}
	if err != nil {
		return Token{}, fmt.Errorf("open the answer of grant %s: %w", f.ID, err)
	}
	return token, nil
}
