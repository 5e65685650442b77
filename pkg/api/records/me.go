package records

import (
	"net/http"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Me describes the principal. UserID is null for applications that act in no user's
// name; ApplicationID and KeyID are null for users.
type Me struct {
	OrganizationID value.ID    `json:"organizationId" doc:"The organization of the credential."`
	ApplicationID  *value.ID   `json:"applicationId" doc:"The application. null for a user."`
	KeyID          *value.ID   `json:"keyId" doc:"The API key. null for a token."`
	UserID         *value.ID   `json:"userId" doc:"The user, or in whose name the application acts. null for an application of its own."`
	Scopes         auth.Scopes `json:"scopes" doc:"The scopes of the credential, sorted by name."`
	SiteIDs        *[]value.ID `json:"siteIds" doc:"The sites that the credential is limited to, at most 100. null if not limited."`
	RateLimit      int         `json:"rateLimit" doc:"Requests per 60 s."`
}

// me is the operation that describes the caller's credential.
func me() api.Operation {
	return api.Operation{
		ID: "getMe", Method: http.MethodGet, Path: "/api/me", Tag: "About", Access: api.Reader,
		Summary: "Read the principal of the credential", Result: Me{},
		Description: "siteIds is null for a credential that is not limited to sites. rateLimit is requests per 60 seconds.",
		Handle: func(r *api.Request) (*api.Response, error) {
			p := &r.Principal
			answer := Me{
				OrganizationID: p.OrganizationID, ApplicationID: orNil(p.ApplicationID), KeyID: orNil(p.KeyID),
				UserID: orNil(p.UserID), Scopes: p.Scopes, RateLimit: p.RateLimit,
			}
			if p.SiteIDs != nil {
				answer.SiteIDs = &p.SiteIDs
			}
			return api.OK(answer)
		},
	}
}

func orNil(id value.ID) *value.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}
