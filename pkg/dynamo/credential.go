package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/value"
)

// Attributes of a credential.
const (
	attrHash         = "hash"
	attrOrganization = "org"
	attrKeyID        = "keyId"
	attrScopes       = "scopes"
	attrKeyExpires   = "keyExpiresAt"
)

func encodeCredential(c account.Credential) item {
	it := credentialKey(c.KeyText).newItem(typeCredential)
	it[attrHash] = binary(c.Hash[:])
	it[attrOrganization], it[attrApplication], it[attrKeyID] = str(c.OrganizationID.String()), str(c.ApplicationID.String()), str(c.KeyID.String())
	it[attrScopes] = str(strings.Join(c.Scopes, " "))
	if c.SiteIDs != nil {
		sites := make([]string, len(c.SiteIDs))
		for i, site := range c.SiteIDs {
			sites[i] = site.String()
		}
		it[attrSites] = str(strings.Join(sites, " "))
	}
	if c.ExpiresAt != nil {
		it[attrKeyExpires] = num(*c.ExpiresAt)
	}
	return it
}

func decodeCredential(textID string, it item) (*account.Credential, error) {
	c := &account.Credential{
		KeyText: textID, Scopes: strings.Fields(getString(it, attrScopes)), Revoked: getBool(it, attrRevoked),
	}
	if n := copy(c.Hash[:], getBinary(it, attrHash)); n != len(c.Hash) {
		return nil, fmt.Errorf("decode credential %s: a hash of %d bytes", textID, n)
	}
	for name, id := range map[string]*value.ID{
		attrOrganization: &c.OrganizationID, attrApplication: &c.ApplicationID, attrKeyID: &c.KeyID,
	} {
		var err error
		if *id, err = value.ParseID(getString(it, name)); err != nil {
			return nil, fmt.Errorf("decode credential %s: %s: %w", textID, name, err)
		}
	}
	for _, text := range strings.Fields(getString(it, attrSites)) {
		site, err := value.ParseID(text)
		if err != nil {
			return nil, fmt.Errorf("decode credential %s: site: %w", textID, err)
		}
		c.SiteIDs = append(c.SiteIDs, site)
	}
	if expires := getTime(it, attrKeyExpires); expires != 0 {
		c.ExpiresAt = &expires
	}
	return c, nil
}

// Credential reads what a presented key is checked against, by the 8
// characters that name it, and the application it belongs to. Both are read
// by primary key, strongly consistent. The credential is nil when there is no
// such key, the application when it was deleted.
func (t *AccountStore) Credential(ctx context.Context, textID string) (*account.Credential, *account.Application, error) {
	it, err := t.get(ctx, credentialKey(textID))
	if err != nil || it == nil {
		return nil, nil, err
	}
	c, err := decodeCredential(textID, it)
	if err != nil {
		return nil, nil, err
	}
	app, err := t.Application(ctx, c.OrganizationID, c.ApplicationID)
	return c, app, err
}
