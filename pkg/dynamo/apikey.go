package dynamo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// CreateKey stores a new key of an application with its credential, and the
// answer that shows it, if one is kept. It is a fault not_found when the
// application is gone, and limit_reached when it has [account.MaxActiveKeys] keys
// that are neither revoked nor expired.
func (t *Table) CreateKey(ctx context.Context, org value.ID, k account.APIKey, credential account.Credential, kept ...*idempotency.Kept) error {
	it, err := docItem(apiKeyKey(org, k.ApplicationID, k.ID), typeKey, k)
	if err != nil {
		return err
	}
	expires := value.Time(0)
	if credential.ExpiresAt != nil {
		expires = *credential.ExpiresAt
	}
	activate := t.update(applicationKey(org, k.ApplicationID),
		"SET #keys.#"+credential.KeyText+" = :expires ADD itemVersion :one", "attribute_exists(PK) AND size(#keys) < :max",
		item{":expires": num(expires), ":one": num(1), ":max": num(account.MaxActiveKeys)})
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
func (t *Table) dropExpiredKeys(ctx context.Context, org, application value.ID) error {
	it, err := t.get(ctx, applicationKey(org, application))
	if err != nil {
		return err
	}
	if it == nil {
		return fault.Missing("application")
	}
	stored, err := decode[applicationItem](it)
	if err != nil {
		return err
	}
	now := t.now().UnixMilli()
	active := maps.Clone(stored.Keys)
	maps.DeleteFunc(active, func(_ string, expires int64) bool { return expires != 0 && expires <= now })
	switch {
	case len(active) >= account.MaxActiveKeys:
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an application can have %d active API keys: revoke one first", account.MaxActiveKeys)
	case len(active) == len(stored.Keys):
		return nil // one was revoked meanwhile
	}
	keys, err := attributevalue.Marshal(active)
	if err != nil {
		return fmt.Errorf("encode active keys: %w", err)
	}
	_, err = t.transact(ctx, "drop expired keys", t.update(applicationKey(org, application),
		"SET #keys = :keys ADD itemVersion :one", "itemVersion = :read",
		item{":keys": keys, ":one": num(1), ":read": num(stored.Version)}))
	return err
}

// Keys reads every key of the application, in the order of their ids.
func (t *Table) Keys(ctx context.Context, org, application value.ID) ([]account.APIKey, error) {
	now := value.TimeOf(t.now())
	return collect(ctx, t, partition(apiKeyPartition(org, application), ""), 0, func(it item) (account.APIKey, error) {
		k, err := decodeKey(it)
		if err != nil {
			return account.APIKey{}, err
		}
		return k.At(now), nil
	})
}

// decodeKey reads an API key. The time of its last use is outside the doc, so that
// writing it never touches what a revocation wrote.
func decodeKey(it item) (*account.APIKey, error) {
	k, err := decodeDoc[account.APIKey](it)
	if used := getTime(it, "usedAt"); err == nil && used != 0 {
		k.LastUsedAt = &used
	}
	return k, err
}

// RevokeKey revokes a key and returns it as it is then, or nil when the
// application has none with the id. A key that is revoked already stays as
// it is; revoked is false then.
func (t *Table) RevokeKey(ctx context.Context, org, application, id value.ID) (k *account.APIKey, revoked bool, err error) {
	err = changing(ctx, "application", func() (done bool, err error) {
		k, err = read(ctx, t, apiKeyKey(org, application, id), decodeKey)
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
			t.update(applicationKey(org, application), "REMOVE #keys.#"+k.TextID()+" ADD itemVersion :one", ifExists, item{":one": num(1)}),
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
// interval ago is written already, and then has the credential say so, so that
// those who read the credential need not try. A deleted key is not an error.
func (t *Table) TouchKey(ctx context.Context, c *account.Credential, interval time.Duration) error {
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

// credentialItem is a credential as it is stored.
type credentialItem struct {
	Hash           []byte      `dynamodbav:"hash"`
	OrganizationID idText      `dynamodbav:"org"`
	ApplicationID  idText      `dynamodbav:"applicationId"`
	KeyID          idText      `dynamodbav:"keyId"`
	Scopes         []string    `dynamodbav:"scopes"`
	SiteIDs        []idText    `dynamodbav:"sites,omitempty"`
	ExpiresAt      *value.Time `dynamodbav:"keyExpiresAt,omitempty"`
	Revoked        bool        `dynamodbav:"revoked,omitempty"`
	UsedAt         value.Time  `dynamodbav:"usedAt,omitempty"`
}

func encodeCredential(c account.Credential) item {
	stored := credentialItem{
		Hash: c.Hash[:], OrganizationID: idText(c.OrganizationID), ApplicationID: idText(c.ApplicationID), KeyID: idText(c.KeyID),
		Scopes: c.Scopes, ExpiresAt: c.ExpiresAt,
	}
	for _, site := range c.SiteIDs {
		stored.SiteIDs = append(stored.SiteIDs, idText(site))
	}
	return encode(credentialKey(c.KeyText), typeCredential, stored)
}

func decodeCredential(textID string, it item) (*account.Credential, error) {
	stored, err := decode[credentialItem](it)
	if err != nil {
		return nil, err
	}
	c := &account.Credential{
		KeyText: textID, OrganizationID: value.ID(stored.OrganizationID), ApplicationID: value.ID(stored.ApplicationID), KeyID: value.ID(stored.KeyID),
		Scopes: stored.Scopes, ExpiresAt: stored.ExpiresAt, Revoked: stored.Revoked, LastUsedAt: stored.UsedAt,
	}
	if copy(c.Hash[:], stored.Hash) != len(c.Hash) || c.OrganizationID.IsZero() {
		return nil, fmt.Errorf("decode credential %s: a hash of %d bytes, organization %s", textID, len(stored.Hash), c.OrganizationID)
	}
	for _, site := range stored.SiteIDs {
		c.SiteIDs = append(c.SiteIDs, value.ID(site))
	}
	return c, nil
}

// Credential reads what a presented key is checked against, by the 8
// characters that name it, and the application it belongs to. Both are read
// by primary key, strongly consistent. The credential is nil when the key
// does not exist, the application when it was deleted.
func (t *Table) Credential(ctx context.Context, textID string) (*account.Credential, *account.Application, error) {
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
func (t *Table) RefreshCredential(ctx context.Context, known *account.Credential) (*account.Credential, *account.Application, error) {
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
