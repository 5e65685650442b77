package records

import (
	"net/http"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/value"
)

// Me describes the principal. UserID is null for applications; ApplicationID
// and KeyID are null for users.
type Me struct {
	OrganizationID value.ID    `json:"organizationId"`
	ApplicationID  *value.ID   `json:"applicationId"`
	KeyID          *value.ID   `json:"keyId"`
	UserID         *value.ID   `json:"userId"`
	Scopes         auth.Scopes `json:"scopes"`
	SiteIDs        *[]value.ID `json:"siteIds"`
	RateLimit      int         `json:"rateLimit"`
}

// me is the operation that describes the caller's credential.
func me() httpapi.Operation {
	return httpapi.Operation{
		ID: "getMe", Method: http.MethodGet, Path: "/api/me", Tag: "About", Access: httpapi.Reader,
		Summary: "Read what the credential stands for", Result: Me{},
		Description: "siteIds is null for a credential that is not limited to sites. rateLimit is requests per 60 seconds.",
		Handle: func(r *httpapi.Request) (*httpapi.Response, error) {
			p := &r.Principal
			answer := Me{
				OrganizationID: p.OrganizationID, ApplicationID: orNil(p.ApplicationID), KeyID: orNil(p.KeyID),
				UserID: orNil(p.UserID), Scopes: p.Scopes, RateLimit: p.RateLimit,
			}
			if p.SiteIDs != nil {
				answer.SiteIDs = &p.SiteIDs
			}
			return httpapi.OK(answer)
		},
	}
}

func orNil(id value.ID) *value.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}
