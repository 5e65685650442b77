package account

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Bounds of portal sessions.
const (
	// MaxPortalSessions is the most that one user has for one application.
	MaxPortalSessions = 100
	// MaxSessionMinutes is the longest that one lasts.
	MaxSessionMinutes = 1_440
)

// CreatePortalSessionDto is the input of a new portal session: a grant by which its
// page manages the webhooks of an application.
type CreatePortalSessionDto struct {
	ApplicationID    *value.ID `json:"applicationId" nullable:"false" doc:"The application whose endpoints and deliveries the session shows."`
	Scopes           *[]string `json:"scopes" nullable:"false" minItems:"1" doc:"webhooks:read to see them, webhooks:write to change, test and recover them."`
	ExpiresInMinutes *int      `json:"expiresInMinutes" nullable:"false" minimum:"1" maximum:"1440" doc:"When the session ends, from now."`
	Theme            *string   `json:"theme" required:"false" nullable:"false" enum:"light,dark,auto" default:"auto" doc:"The colours of the page. auto: as the system of who sees it has them."`
}

// ParseCreatePortalSession reads the body of a creation.
func ParseCreatePortalSession(body []byte) (CreatePortalSessionDto, error) {
	var (
		c   Checks
		dto CreatePortalSessionDto
	)
	if err := c.Read(body, &dto); err != nil {
		return dto, err
	}
	c.Refuse(dto.ApplicationID == nil, "applicationId", fault.DetailRequired, "is required")
	c.Refuse(dto.Scopes == nil || len(*dto.Scopes) == 0, "scopes", fault.DetailRequired, "must name webhooks:read or webhooks:write")
	c.scopesOf(value.Or(dto.Scopes, nil), []string{"webhooks:read", "webhooks:write"})
	if minutes := value.Or(dto.ExpiresInMinutes, 0); minutes < 1 || minutes > MaxSessionMinutes {
		c.Add("expiresInMinutes", fault.DetailOutOfRange, "must be between 1 and %d", MaxSessionMinutes)
	}
	if theme := value.Or(dto.Theme, "auto"); !slices.Contains([]string{"light", "dark", "auto"}, theme) {
		c.Add("theme", fault.DetailUnknown, "must be light, dark or auto")
	}
	return dto, c.Err()
}
