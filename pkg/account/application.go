package account

import (
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Limits of an organization's applications.
const (
	// MaxApplications is the most applications of one organization.
	MaxApplications = 100
	// DefaultRateLimit is the requests per 60 s that a new application has.
	DefaultRateLimit = 600
	// MaxRateLimit is the highest rate limit that an operator can set; the
	// lowest is 1.
	MaxRateLimit = 1_000_000
)

// Status is an application's status.
type Status string

// The statuses of an application.
const (
	Active    Status = "ACTIVE"
	Suspended Status = "SUSPENDED" // its keys and tokens are refused
)

// Statuses lists every status of an application.
func Statuses() []string { return []string{string(Active), string(Suspended)} }

// Application is a developer application as the API shows it. ClientSecret
// is masked, except in what [NewApplication] returns.
type Application struct {
	ID             value.ID   `json:"id"`
	OrganizationID value.ID   `json:"organizationId"`
	UserID         value.ID   `json:"userId" doc:"The user who created it."`
	Name           string     `json:"name" doc:"The name, 1 to 120 characters."`
	Description    *string    `json:"description" doc:"Free text. null if none."`
	Website        *string    `json:"website" doc:"The URL of its website. null if none."`
	RedirectURI    *string    `json:"redirectUri" doc:"Where the portal sends users back who were asked to let the application act for them. null if none."`
	Status         Status     `json:"status" doc:"ACTIVE or SUSPENDED; keys and tokens of a suspended application are refused."`
	ClientID       value.ID   `json:"clientId" doc:"The id with which the application requests tokens."`
	ClientSecret   string     `json:"clientSecret" doc:"The whole secret only in the answer that creates or rotates it, then masked: cs_****Jw3k."`
	RateLimit      int        `json:"rateLimit" doc:"Requests per 60 s over all keys and tokens of the application."`
	CreatedAt      value.Time `json:"createdAt"`
	UpdatedAt      value.Time `json:"updatedAt"`

	ChangedBy *AuditEntry `json:"-"` // by which it is being stored; nil: not for the audit trail
}

// CreateApplicationDto is the input of a new application.
type CreateApplicationDto struct {
	Name        *string `json:"name" nullable:"false" minLength:"1" maxLength:"120" doc:"The name."`
	Description *string `json:"description" required:"false" maxLength:"2000" doc:"Free text."`
	Website     *string `json:"website" required:"false" format:"uri" maxLength:"2048" doc:"The absolute URL of its website."`
	RedirectURI *string `json:"redirectUri" required:"false" format:"uri" maxLength:"2048" doc:"Where the portal sends users back who were asked to let the application act for them. https, or http on 127.0.0.1 and [::1]; without fragment, user name and password."`
}

// UpdateApplicationDto is the input of a change; an absent field stays.
type UpdateApplicationDto struct {
	Name        Patch[string] `json:"name" required:"false" nullable:"false" minLength:"1" maxLength:"120" doc:"The name."`
	Description Patch[string] `json:"description" required:"false" maxLength:"2000" doc:"null clears it."`
	Website     Patch[string] `json:"website" required:"false" format:"uri" maxLength:"2048" doc:"null clears it."`
	RedirectURI Patch[string] `json:"redirectUri" required:"false" format:"uri" maxLength:"2048" doc:"null clears it."`
}

// ParseCreateApplication reads the body of a creation. An error is a fault
// that names each field that is wrong.
func ParseCreateApplication(body []byte) (CreateApplicationDto, error) {
	var (
		c   Checks
		dto CreateApplicationDto
	)
	if err := c.Read(body, &dto); err != nil {
		return CreateApplicationDto{}, err
	}
	c.Refuse(dto.Name == nil, "name", fault.DetailRequired, "is required")
	c.Name(dto.Name)
	c.Description(dto.Description)
	c.website(dto.Website)
	c.redirectURI(dto.RedirectURI)
	return dto, c.Err()
}

// ParseUpdateApplication reads the body of a change.
func ParseUpdateApplication(body []byte) (UpdateApplicationDto, error) {
	var (
		c      Checks
		change UpdateApplicationDto
	)
	if err := c.Read(body, &change); err != nil {
		return UpdateApplicationDto{}, err
	}
	c.Refuse(change.Name.Null, "name", fault.DetailNotAllowed, "cannot be cleared: leave it out to keep it")
	c.Name(change.Name.Pointer())
	c.Description(change.Description.Pointer())
	c.website(change.Website.Pointer())
	c.redirectURI(change.RedirectURI.Pointer())
	return change, c.Err()
}

// NewApplication makes an application that shows its client secret in full, for
// the creation's answer only. The table stores its [Application.Masked] form and
// the secret's [HashSecret].
func NewApplication(organization, user value.ID, dto CreateApplicationDto, now value.Time) Application {
	return Application{
		ID: value.NewID(), OrganizationID: organization, UserID: user,
		Name: *dto.Name, Description: dto.Description, Website: dto.Website, RedirectURI: dto.RedirectURI,
		Status: Active, ClientID: value.NewRandomID(), ClientSecret: newClientSecret(),
		RateLimit: DefaultRateLimit, CreatedAt: now, UpdatedAt: now,
	}
}

// Masked returns the application with its client secret masked.
func (a Application) Masked() Application {
	a.ClientSecret = maskClientSecret(a.ClientSecret)
	return a
}

// Update applies a change and reports whether anything differs now. Only then
// does updatedAt change, and it always rises.
func (a *Application) Update(change UpdateApplicationDto, now value.Time) bool {
	changed := false
	if change.Name.Given && change.Name.Value != a.Name {
		a.Name, changed = change.Name.Value, true
	}
	optional := func(field **string, patch Patch[string]) {
		next := patch.Pointer()
		same := next == nil && *field == nil || next != nil && *field != nil && *next == **field
		if patch.Given && !same {
			*field, changed = next, true
		}
	}
	optional(&a.Description, change.Description)
	optional(&a.Website, change.Website)
	optional(&a.RedirectURI, change.RedirectURI)
	return changed && a.touch(now)
}

// SetStatus suspends or activates, and reports whether that changed the status.
func (a *Application) SetStatus(status Status, now value.Time) bool {
	if a.Status == status {
		return false
	}
	a.Status = status
	return a.touch(now)
}

// SetRateLimit sets the requests per 60 s, 1 to [MaxRateLimit], for an operator.
// It reports whether that changed the limit.
func (a *Application) SetRateLimit(limit int, now value.Time) (bool, error) {
	if limit < 1 || limit > MaxRateLimit {
		return false, fault.Field(fault.InBody, "rateLimit", fault.DetailOutOfRange, "must be between 1 and %d", MaxRateLimit)
	}
	if a.RateLimit == limit {
		return false, nil
	}
	a.RateLimit = limit
	return a.touch(now), nil
}

func (a *Application) touch(now value.Time) bool {
	a.UpdatedAt = max(now, a.UpdatedAt+1)
	return true
}
