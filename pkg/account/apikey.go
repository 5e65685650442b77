package account

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Limits of an application's API keys.
const (
	// MaxActiveKeys is the most keys of one application that are neither
	// revoked nor expired.
	MaxActiveKeys = 20
	// MaxKeySites is the most sites that one key may name.
	MaxKeySites = 100
)

// KeyStatus is an API key's status.
type KeyStatus string

// The statuses of an API key.
const (
	KeyActive  KeyStatus = "ACTIVE"
	KeyRevoked KeyStatus = "REVOKED"
	KeyExpired KeyStatus = "EXPIRED" // computed when read
)

// KeyStatuses lists every status of an API key.
func KeyStatuses() []string {
	return []string{string(KeyActive), string(KeyRevoked), string(KeyExpired)}
}

// ReadScopes are the scopes that a key can hold, sorted: one for each kind of
// record, by its plural.
func ReadScopes() []string {
	return []string{"categories:read", "customers:read", "invoices:read", "orders:read", "products:read", "stock:read"}
}

// Sites is a list of sites; nil means every site and is null in JSON.
type Sites []value.ID

// MarshalJSONTo implements [json.MarshalerTo].
func (s Sites) MarshalJSONTo(enc *jsontext.Encoder) error {
	if s == nil {
		return enc.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(enc, []value.ID(s))
}

// APIKey is an API key as the API shows it, without the key itself.
type APIKey struct {
	ID             value.ID    `json:"id"`
	OrganizationID value.ID    `json:"organizationId"`
	ApplicationID  value.ID    `json:"applicationId" doc:"The application that the key belongs to."`
	Name           string      `json:"name" doc:"The name, 1 to 120 characters."`
	Prefix         string      `json:"prefix" doc:"The first 17 characters of the key."`
	Last4          string      `json:"last4" doc:"The last 4 characters of the key."`
	Scopes         []string    `json:"scopes" doc:"The scopes of the key, sorted by name."`
	SiteIDs        Sites       `json:"siteIds" nullable:"true" doc:"null: every site."`
	Networks       *[]string   `json:"allowedNetworks" doc:"The networks from which the key is accepted, in CIDR notation. null: from every address."`
	Status         KeyStatus   `json:"status" doc:"ACTIVE, REVOKED or EXPIRED."`
	LastUsedAt     *value.Time `json:"lastUsedAt" doc:"When it was last used, updated at most once in ten minutes."`
	ExpiresAt      *value.Time `json:"expiresAt" doc:"When it expires. null: never."`
	RevokedAt      *value.Time `json:"revokedAt" doc:"When it was revoked. null if it was not."`
	CreatedBy      value.ID    `json:"createdBy" format:"uuid" doc:"The user who created it."`
	CreatedAt      value.Time  `json:"createdAt"`
	UpdatedAt      value.Time  `json:"updatedAt"`

	ChangedBy *AuditEntry `json:"-"` // by which it is being stored; nil: not for the audit trail
}

// CreatedKey is the answer to a creation, the only one that shows the key itself.
type CreatedKey struct {
	APIKey
	Key string `json:"key" doc:"The key itself, shown in this answer only."`
}

// CreateApiKeyDto is the input of a new key. Absent scopes are those of the
// read scopes that its maker has, absent siteIds every site, absent networks every
// address, an absent expiresAt never.
type CreateApiKeyDto struct { //nolint:revive,staticcheck // clients know it by this name
	Name      *string     `json:"name" nullable:"false" minLength:"1" maxLength:"120" doc:"The name."`
	Scopes    *[]string   `json:"scopes" required:"false" minItems:"1" doc:"{readScopes}. Absent: those that you have."`
	SiteIDs   *[]value.ID `json:"siteIds" required:"false" minItems:"1" maxItems:"100" doc:"Absent: every site."`
	Networks  *[]string   `json:"allowedNetworks" required:"false" minItems:"1" maxItems:"50" doc:"Networks of IPv4 or IPv6 in CIDR notation, such as 203.0.113.0/24; the key is refused from elsewhere. Absent: every address."`
	ExpiresAt *value.Time `json:"expiresAt" required:"false" doc:"In the future; absent: never."`
}

// ParseCreateKey reads the body of a key's creation at the time now.
func ParseCreateKey(body []byte, now value.Time) (CreateApiKeyDto, error) {
	var (
		c   Checks
		dto CreateApiKeyDto
	)
	if err := c.Read(body, &dto); err != nil {
		return CreateApiKeyDto{}, err
	}
	c.Refuse(dto.Name == nil, "name", fault.DetailRequired, "is required")
	c.Name(dto.Name)
	if dto.Scopes != nil {
		c.scopes(*dto.Scopes)
	}
	if dto.SiteIDs != nil {
		c.sites(*dto.SiteIDs)
	}
	if dto.Networks != nil {
		c.networks(*dto.Networks)
	}
	if dto.ExpiresAt != nil && *dto.ExpiresAt <= now {
		c.Add("expiresAt", fault.DetailOutOfRange, "must lie in the future")
	}
	return dto, c.Err()
}

func (c *Checks) scopes(scopes []string) {
	if len(scopes) == 0 {
		c.Add("scopes", fault.DetailOutOfRange, "must not be empty: leave it out for every scope")
	}
	c.scopesOf(scopes, ReadScopes())
}

func (c *Checks) sites(sites []value.ID) {
	if len(sites) == 0 || len(sites) > MaxKeySites {
		c.Add("siteIds", fault.DetailOutOfRange, "must name 1 to %d sites: leave it out for every site", MaxKeySites)
	}
	for i, site := range sites {
		if site.IsZero() {
			c.Add("siteIds["+strconv.Itoa(i)+"]", fault.DetailFormat, "must be the UUID of a site")
		}
	}
}

// NewKey makes an API key of the application, and the credential that is stored
// to check a presented key.
func NewKey(application *Application, user value.ID, dto CreateApiKeyDto, now value.Time) (CreatedKey, Credential) {
	key := newKeyText()
	created := CreatedKey{Key: key, APIKey: APIKey{
		ID: value.NewID(), OrganizationID: application.OrganizationID, ApplicationID: application.ID,
		Name: *dto.Name, Prefix: key[:keyIDEnd], Last4: key[keyLength-maskedDigits:],
		Scopes: ReadScopes(), Status: KeyActive, ExpiresAt: dto.ExpiresAt,
		CreatedBy: user, CreatedAt: now, UpdatedAt: now,
	}}
	if dto.Scopes != nil {
		created.Scopes = slices.Compact(slices.Sorted(slices.Values(*dto.Scopes)))
	}
	if dto.SiteIDs != nil {
		created.SiteIDs = slices.Compact(slices.SortedFunc(slices.Values(*dto.SiteIDs), value.ID.Compare))
	}
	var networks []string
	if dto.Networks != nil {
		networks = canonical(*dto.Networks)
		created.Networks = &networks
	}
	return created, Credential{
		KeyText: created.TextID(), Hash: HashSecret(key),
		OrganizationID: application.OrganizationID, ApplicationID: application.ID, KeyID: created.ID,
		Scopes: created.Scopes, SiteIDs: created.SiteIDs, Networks: networks, ExpiresAt: dto.ExpiresAt,
	}
}

// TextID is the 8-character id inside the key, by which its credential is found.
func (k *APIKey) TextID() string { return k.Prefix[len(keyPrefix):] }

// At returns the key as it is at the time now: its status follows from
// revokedAt and expiresAt.
func (k APIKey) At(now value.Time) APIKey {
	switch {
	case k.RevokedAt != nil:
		k.Status = KeyRevoked
	case k.ExpiresAt != nil && *k.ExpiresAt <= now:
		k.Status = KeyExpired
	default:
		k.Status = KeyActive
	}
	return k
}

// Revoke revokes the key and reports whether it was not revoked before.
func (k *APIKey) Revoke(now value.Time) bool {
	if k.RevokedAt != nil {
		return false
	}
	k.RevokedAt, k.Status = &now, KeyRevoked
	k.UpdatedAt = max(now, k.UpdatedAt+1)
	return true
}

// Credential is stored to check a presented key.
type Credential struct {
	KeyText        string // the 8-character id inside the key
	Hash           Hash
	OrganizationID value.ID
	ApplicationID  value.ID
	KeyID          value.ID
	Scopes         []string
	SiteIDs        Sites
	Networks       []string // nil: every address
	ExpiresAt      *value.Time
	Revoked        bool
	LastUsedAt     value.Time // as last written; 0: never
}
