// Package source is the shops whose webhooks bring records in: what is kept of
// each shop, how its webhooks are verified, and which changes follow from one.
// Whose a webhook is, and so the organization of its records, follows from the
// signature alone. Package shop reads what the systems send.
package source

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/shop"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// MaxSources is the most sources of an organization.
	MaxSources = 20
	// RateLimit is how many signed webhooks of a source are taken in 60 s: half of what
	// an organization may ask.
	RateLimit = 3_000
	// Path is where the webhooks of a source go, before its id.
	Path = "/ingest/sources/"

	minSecret = 8
	maxSecret = 255

	maxIDPrefix = 40
)

// Source is a shop as it is stored.
type Source struct {
	ID             value.ID    `json:"id"`
	OrganizationID value.ID    `json:"organizationId"`
	Name           string      `json:"name"`
	Kind           shop.System `json:"kind"`
	IDPrefix       string      `json:"idPrefix,omitzero"`
	webhook.KeptSecrets
	CreatedAt value.Time `json:"createdAt"`
	UpdatedAt value.Time `json:"updatedAt"` // rises with every change

	// ChangedBy is the change by which it is being stored. The store never returns one.
	ChangedBy *account.AuditEntry `json:"-"`
}

// WebhookSource is a source as the API shows it.
type WebhookSource struct {
	ID             value.ID    `json:"id"`
	OrganizationID value.ID    `json:"organizationId"`
	Name           string      `json:"name" doc:"The name, 1 to 120 characters."`
	Kind           shop.System `json:"kind" doc:"The system of the shop; an open enumeration."`
	IDPrefix       string      `json:"idPrefix" doc:"What keeps the ids of its records apart from those of another shop of the system. Empty: they are those of imported files."`
	URL            string      `json:"url" doc:"The delivery URL to enter in the shop."`
	Secret         string      `json:"secret" doc:"The secret that signs the shop's webhooks: in full only when the service has just made it, otherwise its last characters."`
	CreatedAt      value.Time  `json:"createdAt"`
	UpdatedAt      value.Time  `json:"updatedAt"`
}

// CreateSourceDto is the input of a new source.
type CreateSourceDto struct {
	Kind     *shop.System `json:"kind" nullable:"false" doc:"The system of the shop."`
	Name     *string      `json:"name" nullable:"false" minLength:"1" maxLength:"120" doc:"The name."`
	IDPrefix string       `json:"idPrefix" required:"false" maxLength:"40" doc:"The ids of the shop's records derive from this and its own ids, handles and numbers. Two sources of a kind must differ in it. Empty: the ids are those of imported files."`
	Secret   *string      `json:"secret" required:"false" minLength:"8" maxLength:"255" doc:"Required for Shopify, which makes it. Absent for WooCommerce, for which the service makes it."`
}

// UpdateSourceDto is the input of a change.
type UpdateSourceDto struct {
	Name account.Patch[string] `json:"name" required:"false" nullable:"false" minLength:"1" maxLength:"120" doc:"The name."`
}

// RotateSourceSecretDto is the input of a rotation.
type RotateSourceSecretDto struct {
	Secret       *string `json:"secret" required:"false" minLength:"8" maxLength:"255" doc:"As on creation."`
	OverlapHours *int    `json:"overlapHours" required:"false" minimum:"0" maximum:"168" default:"24" doc:"For how many hours webhooks that the old secret signs are taken, too. 0 ends it at once."`
}

// Seal encrypts a text for a purpose.
type Seal = func(plain []byte, purpose string) string

// New makes a source of the organization from the body of a request. made is the
// secret if the service makes it, else "".
func New(organization value.ID, body []byte, seal Seal, now value.Time) (s *Source, made string, err error) {
	var c account.Checks
	var dto CreateSourceDto
	if err := c.Read(body, &dto); err != nil {
		return nil, "", err
	}
	c.Refuse(dto.Kind == nil, "kind", fault.DetailRequired, "is required")
	c.Refuse(dto.Name == nil, "name", fault.DetailRequired, "is required")
	c.Name(dto.Name)
	dto.IDPrefix = strings.TrimSpace(dto.IDPrefix)
	c.Refuse(utf8.RuneCountInString(dto.IDPrefix) > maxIDPrefix, "idPrefix", fault.DetailOutOfRange, "must have at most 40 characters")
	if known := shop.System("").Values(); dto.Kind != nil && !slices.Contains(known, string(*dto.Kind)) {
		c.Add("kind", fault.DetailFormat, "must be one of %s", strings.Join(known, ", "))
	} else if dto.Kind != nil {
		checkSecret(&c, *dto.Kind, dto.Secret)
	}
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	s = &Source{ID: value.NewRandomID(), OrganizationID: organization, Name: *dto.Name, Kind: *dto.Kind, IDPrefix: dto.IDPrefix, CreatedAt: now, UpdatedAt: now}
	s.Secret, made = s.seal(dto.Secret, seal)
	return s, made, nil
}

// checkSecret refuses a secret that is missing, or one for a system whose secrets
// the service makes.
func checkSecret(c *account.Checks, of shop.System, text *string) {
	switch entered := of == shop.Shopify; {
	case !entered:
		c.Refuse(text != nil, "secret", fault.DetailNotAllowed, "must be absent: the service makes it")
	case text == nil:
		c.Add("secret", fault.DetailRequired, "is required: Shopify shows it where webhooks are set up")
	default:
		*text = strings.TrimSpace(*text)
		c.Refuse(len(*text) < minSecret || len(*text) > maxSecret, "secret", fault.DetailOutOfRange, "must have 8 to 255 characters")
	}
}

// seal seals the secret, or a new one, which it returns, too.
func (s *Source) seal(entered *string, seal Seal) (sealed webhook.Secret, made string) {
	if entered == nil {
		made = webhook.NewSecretText()
		entered = &made
	}
	return webhook.KeepSecret(*entered, seal([]byte(*entered), purpose(s.ID))), made
}

// purpose is what a source's secret is sealed for.
func purpose(id value.ID) string { return "webhook source " + id.String() }

// Update returns the source as a request changes it; the same one when nothing
// differs.
func (s *Source) Update(body []byte, now value.Time) (*Source, error) {
	var c account.Checks
	var dto UpdateSourceDto
	if err := c.Read(body, &dto); err != nil {
		return nil, err
	}
	c.Refuse(dto.Name.Null, "name", fault.DetailNotAllowed, "cannot be cleared: leave it out to keep it")
	c.Name(dto.Name.Pointer())
	if err := c.Err(); err != nil || !dto.Name.Given || dto.Name.Value == s.Name {
		return s, err
	}
	next := *s
	next.Name, next.UpdatedAt = dto.Name.Value, max(now, s.UpdatedAt+1)
	return &next, nil
}

// Rotate returns the source with a new secret, as a request wants it, and that
// secret if the service makes it.
func (s *Source) Rotate(body []byte, seal Seal, now value.Time) (next *Source, made string, err error) {
	var c account.Checks
	var dto RotateSourceSecretDto
	if len(body) > 0 {
		if err := strictjson.Unmarshal(body, &dto); err != nil {
			return nil, "", err
		}
	}
	hours := value.Or(dto.OverlapHours, webhook.DefaultOverlapHours)
	c.Refuse(hours < 0 || hours > webhook.MaxOverlapHours, "overlapHours", fault.DetailOutOfRange, "must be between 0 and 168")
	checkSecret(&c, s.Kind, dto.Secret)
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	rotated := *s
	secret, made := s.seal(dto.Secret, seal)
	rotated.Replace(secret, time.Duration(hours)*time.Hour, now)
	rotated.UpdatedAt = max(now, s.UpdatedAt+1)
	return &rotated, made, nil
}

// Reseal returns the source with its secrets as again seals them, without those
// that count no more; the source itself when again changes none.
func (s *Source) Reseal(again func(text, purpose string) (string, error), now value.Time) (*Source, error) {
	next := *s
	if changed, err := webhook.Reseal(next.Sealed(purpose(s.ID), now), again); err != nil || !changed {
		return s, err
	}
	return &next, nil
}

// Shape is the source as the API shows it at a base URL, with the secret that was
// just made, if any.
func (s *Source) Shape(base, made string) WebhookSource {
	if made == "" {
		made = "****" + s.Secret.Tail
	}
	return WebhookSource{
		ID: s.ID, OrganizationID: s.OrganizationID, Name: s.Name, Kind: s.Kind, IDPrefix: s.IDPrefix, URL: base + Path + s.ID.String(),
		Secret: made, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
}

// ETag names the state of the source.
func (s *Source) ETag() string { return `"` + s.UpdatedAt.String() + `"` }
