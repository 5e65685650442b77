package dynamo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Attributes of an API key besides its doc. The time of the last use is apart
// from the doc, so that writing it never touches what a revocation wrote.
const (
	attrUsed    = "usedAt"
	attrRevoked = "revoked"
)

// CreateKey stores a new key of an application with its credential, and the
// answer that shows it, if one is kept. It is a fault not_found when the
// application is gone, and limit_reached when it has [account.MaxActiveKeys] keys
// that are neither revoked nor expired.
func (t *AccountStore) CreateKey(ctx context.Context, org value.ID, k account.APIKey, credential account.Credential, kept ...*idempotency.Kept) error {
	it := apiKeyKey(org, k.ApplicationID, k.ID).newItem(typeKey)
	var err error
	if it[attrDoc], err = encodeDoc(k); err != nil {
		return err
	}
	expires := value.Time(0)
	if credential.ExpiresAt != nil {
		expires = *credential.ExpiresAt
	}
	activate := named(t.update(applicationKey(org, k.ApplicationID),
		"SET #keys.#id = :expires ADD itemVersion :one", "attribute_exists(PK) AND size(#keys) < :max",
		item{":expires": num(expires), ":one": num(1), ":max": num(account.MaxActiveKeys)},
	), map[string]string{"#keys": attrKeys, "#id": credential.KeyText})
	writes := []write{activate, t.put(it, ifAbsent, nil), t.put(encodeCredential(credential), ifAbsent, nil)}
	return changing(ctx, "application", func() (done bool, err error) {
		refused, err := t.transact(ctx, "create an API key", t.withAnswers(writes, kept)...)
		if !refused.has(0) {
			return true, orLost(refused, len(writes), kept, err)
		}
		return false, t.dropExpiredKeys(ctx, org, k.ApplicationID)
	})
}

// dropExpiredKeys removes expired keys from the active ones. It is a fault
// when the application is gone, or as many as it may have are active even so.
func (t *AccountStore) dropExpiredKeys(ctx context.Context, org, application value.ID) error {
	it, err := t.get(ctx, applicationKey(org, application))
	if err != nil {
		return err
	}
	if it == nil {
		return fault.Missing("application")
	}
	active, now := activeKeys(it), t.now().UnixMilli()
	names, expression, dropped := map[string]string{"#keys": attrKeys}, "", 0
	for textID, expires := range active {
		if expires == 0 || expires > now {
			continue
		}
		name := "#k" + strconv.Itoa(dropped)
		names[name] = textID
		expression += ", #keys." + name
		dropped++
	}
	switch {
	case dropped == 0 && len(active) >= account.MaxActiveKeys:
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an application can have %d active API keys: revoke one first", account.MaxActiveKeys)
	case dropped == 0:
		return nil // one was revoked meanwhile
	}
	refused, err := t.transact(ctx, "drop expired keys", named(
		t.update(applicationKey(org, application), "REMOVE "+expression[2:]+" ADD itemVersion :one", ifExists, item{":one": num(1)}), names))
	if len(refused) > 0 {
		return fault.Missing("application")
	}
	return err
}

// activeKeys reads the text ids of an application's keys that are not
// revoked, with when each expires (ms, 0: never).
func activeKeys(application item) map[string]int64 {
	active := map[string]int64{}
	if m, ok := application[attrKeys].(*types.AttributeValueMemberM); ok {
		for textID := range m.Value {
			active[textID] = getNumber(m.Value, textID)
		}
	}
	return active
}

// Keys reads every key of the application, in the order of their ids.
func (t *AccountStore) Keys(ctx context.Context, org, application value.ID) ([]account.APIKey, error) {
	now := value.TimeOf(t.now())
	return collect(ctx, t.db, partition(apiKeyPartition(org, application), ""), 0, func(it item) (account.APIKey, error) {
		k, err := decodeKey(it)
		if err != nil {
			return account.APIKey{}, err
		}
		return k.At(now), nil
	})
}

func decodeKey(it item) (*account.APIKey, error) {
	k, err := decodeDoc[account.APIKey](it)
	if used := getTime(it, attrUsed); err == nil && used != 0 {
		k.LastUsedAt = &used
	}
	return k, err
}

// RevokeKey revokes a key and returns it as it is then, or nil when the
// application has none with the id. A key that is revoked already stays as
// it is; revoked is false then.
func (t *AccountStore) RevokeKey(ctx context.Context, org, application, id value.ID) (k *account.APIKey, revoked bool, err error) {
	err = changing(ctx, "application", func() (done bool, err error) {
		k, err = read(ctx, t.db, apiKeyKey(org, application, id), decodeKey)
		revoked = err == nil && k != nil && k.Revoke(value.TimeOf(t.now()))
		if !revoked {
			return true, err
		}
		stored := *k
		stored.LastUsedAt = nil
		doc, err := encodeDoc(stored)
		if err != nil {
			return false, err
		}
		refused, err := t.transact(ctx, "revoke an API key",
			named(t.update(applicationKey(org, application), "REMOVE #keys.#id ADD itemVersion :one", ifExists, item{":one": num(1)}),
				map[string]string{"#keys": attrKeys, "#id": k.TextID()}),
			t.update(apiKeyKey(org, application, id), "SET doc = :doc, revoked = :true",
				"attribute_exists(PK) AND attribute_not_exists(revoked)", item{":doc": doc, ":true": boolean(true)}),
			t.update(credentialKey(k.TextID()), "SET revoked = :true", ifExists, item{":true": boolean(true)}))
		if refused.has(0) {
			k, revoked = nil, false // the application was deleted meanwhile
			return true, nil
		}
		return len(refused) == 0, err
	})
	return k, revoked, err
}

// TouchKey writes that the credential's key was used, unless a use less than the
// interval ago is written already, and then has the credential tell it, so that
// those who read the credential need not try. A key that is gone is no error.
func (t *AccountStore) TouchKey(ctx context.Context, c *account.Credential, interval time.Duration) error {
	now := value.TimeOf(t.now())
	_, _, err := t.updateItem(ctx, "write a key's last use", t.update(apiKeyKey(c.OrganizationID, c.ApplicationID, c.KeyID), "SET usedAt = :now",
		"attribute_exists(PK) AND (attribute_not_exists(usedAt) OR usedAt <= :before)",
		item{":now": num(now), ":before": num(now.Add(-interval))}), types.ReturnValueNone)
	if err != nil {
		return err
	}
	_, _, err = t.updateItem(ctx, "write a credential's last use",
		t.update(credentialKey(c.KeyText), "SET usedAt = :now", ifExists, item{":now": num(now)}), types.ReturnValueNone)
	return err
}

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
		LastUsedAt: getTime(it, attrUsed),
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

// RefreshCredential reads a credential that was found before, and its
// application, in one call, eventually consistent: as they were a moment ago,
// usually less than a second, for one read unit. It reads as Credential does
// when either is missing in that answer.
func (t *AccountStore) RefreshCredential(ctx context.Context, known *account.Credential) (*account.Credential, *account.Application, error) {
	items, err := t.batchGet(ctx, []key{credentialKey(known.KeyText), applicationKey(known.OrganizationID, known.ApplicationID)}, false)
	if err != nil {
		return nil, nil, err
	}
	if items = t.live(items); len(items) < 2 {
		return t.Credential(ctx, known.KeyText)
	}
	if keyOf(items[0]) != credentialKey(known.KeyText) {
		items[0], items[1] = items[1], items[0]
	}
	c, err := decodeCredential(known.KeyText, items[0])
	if err != nil {
		return nil, nil, err
	}
	app, err := decodeDoc[account.Application](items[1])
	return c, app, err
}
