package oauth

import (
	"context"
	"net/http"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
)

// RevocationRequest documents the form of a request that revokes a token.
type RevocationRequest struct {
	Token        string `json:"token" minLength:"1" doc:"A refresh token, or an access token in the name of a user."`
	Hint         string `json:"token_type_hint" required:"false" doc:"Not needed, and ignored."`
	ClientID     string `json:"client_id" required:"false" format:"uuid" doc:"The application's clientId, unless it is sent by HTTP Basic."`
	ClientSecret string `json:"client_secret" required:"false" doc:"The application's clientSecret, unless it is sent by HTTP Basic or the application is PUBLIC."`
}

func (a *area) revokeOperation() api.Operation {
	return api.Operation{
		ID: "revokeToken", Method: http.MethodPost, Path: revokePath,
		Summary: "End a grant by one of its tokens",
		Description: "The revocation endpoint of OAuth 2.0 (RFC 7009). Authenticate as for a token. A refresh token, however old, and an access token " +
			"end the grant that they come of: it gets no more tokens, and within 5 s the service refuses its access tokens. The answer is 200, too, where there is nothing to end: " +
			"a token that is unknown or another client's, or whose grant has ended. A token of the application's own is unsupported_token_type: " +
			"it ends after an hour, or with its application. The request counts against the application's rate limit.",
		Body: RevocationRequest{}, BodyType: formType,
		Errors: []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable},
		Handle: a.revoke, Counted: true, Refuse: &api.Refusals{Shape: TokenError{}, Answer: answerError},
	}
}

func (a *area) revoke(r *api.Request) (*api.Response, error) {
	form, presented, err := presentedBy(r)
	if err != nil {
		return nil, err
	}
	if form["token"] == "" {
		return nil, invalidRequest("token is required")
	}
	client, err := a.authenticate(r, presented)
	if err != nil {
		return nil, err
	}
	done := &api.Response{Header: notStored()}
	f, err := a.familyOf(r.Context(), client, form["token"])
	if f == nil && client.Public { // nothing proves who asks: it counts as a wrong secret does
		return done, a.wrong(r, client, err)
	}
	if refused := a.admit(r, client.Application); refused != nil {
		return nil, refused
	}
	if f == nil {
		return done, err
	}
	r.Principal.UserID = f.UserID // for the audit trail
	_, err = a.store.DeleteGrant(r.Context(), &f.Grant, r.ChangeBy(audit.GrantRevoked, f.ApplicationID, f.ID))
	return done, err
}

// familyOf returns the grant to the client that a genuine token comes of, nil where
// there is none.
func (a *area) familyOf(ctx context.Context, client *account.Client, token string) (*account.Family, error) {
	app := client.Application
	if id, err := account.GrantOf(token); err == nil {
		f, err := a.store.Grant(ctx, app.OrganizationID, app.ID, id)
		if err != nil || f == nil || !f.Refreshes(token) {
			return nil, err
		}
		return f, nil
	}
	claims, err := a.cfg.Signer.Verify(ctx, token)
	switch {
	case err != nil, claims == nil, claims.ApplicationID != app.ID:
		return nil, err
	case claims.User == nil:
		return nil, &refusal{code: unsupportedTokenType, description: "it is the application's own: it ends after an hour, or with its application"}
	}
	return a.store.Grant(ctx, app.OrganizationID, app.ID, claims.User.GrantID)
}
