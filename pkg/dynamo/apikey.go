package dynamo

import (
	"context"
	"maps"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Attributes of a key and of its credential.
const (
	attrRevoked = "Revoked"
	attrUsed    = "LastUsedAt"
)

// CreateKey stores a new key of an application with its credential, and the
// answer that shows it, if one is kept. It is a fault not_found when the
// application is gone, and limit_reached when it has [account.MaxActiveKeys] keys
// that are neither revoked nor expired.
func (t *Table) CreateKey(ctx context.Context, org value.ID, k account.APIKey, credential account.Credential, kept ...*idempotency.Kept) error {
	it := authored(docItem(apiKeyKey(org, k.ApplicationID, k.ID), typeKey, k), k.ChangedBy)
	expires := value.Time(0)
	if credential.ExpiresAt != nil {
		expires = *credential.ExpiresAt
	}
	activate := t.update(applicationKey(org, k.ApplicationID),
		"SET #keys.#"+credential.KeyText+" = :expires ADD Version :one",
		when("attribute_exists(PK) AND size(#keys) < :max", item{":max": num(account.MaxActiveKeys)}),
		item{":expires": num(expires), ":one": num(1)})
	writes := []write{activate, t.put(it, ifAbsent), t.put(encode(credentialKey(credential.KeyText), typeCredential, credential), ifAbsent)}
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
	stored, err := read(ctx, t, applicationKey(org, application), decodeFound[applicationItem])
	switch {
	case err != nil:
		return err
	case stored == nil:
		return fault.Missing("application")
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
	_, _, err = t.updateItem(ctx, "drop expired keys", t.set(applicationKey(org, application),
		item{"keys": attribute(active), attrItemVersion: num(stored.Version + 1)}, ifEqual(attrItemVersion, stored.Version)))
	return err
}

// Keys reads every key of the application, in the order of their ids.
func (t *Table) Keys(ctx context.Context, org, application value.ID) ([]account.APIKey, error) {
	stored, err := collect(ctx, t, partition(apiKeyPartition(org, application), ""), 0, decodeKey)
	keys := make([]account.APIKey, len(stored))
	for i, k := range stored {
		keys[i] = k.At(value.TimeOf(t.now()))
	}
	return keys, err
}

// decodeKey reads an API key. The time of its last use is outside the doc, so that
// writing it never touches what a revocation wrote.
func decodeKey(it item) (*account.APIKey, error) {
	k, err := decodeDoc[account.APIKey](it)
	if err != nil || k == nil {
		return nil, err
	}
	used, err := decode[struct{ LastUsedAt *value.Time }](it)
	k.LastUsedAt = used.LastUsedAt
	return k, err
}

// RevokeKey revokes a key and returns it as it is then, or nil when the
// application has none with the id. A key that is revoked already stays as
// it is.
func (t *Table) RevokeKey(ctx context.Context, org, application, id value.ID, by *account.AuditEntry) (k *account.APIKey, err error) {
	err = changing(ctx, "application", func() (done bool, err error) {
		k, err = read(ctx, t, apiKeyKey(org, application, id), decodeKey)
		if err != nil || k == nil || !k.Revoke(value.TimeOf(t.now())) {
			return true, err
		}
		stored := *k
		stored.LastUsedAt = nil
		refused, err := t.transact(ctx, "revoke an API key",
			t.update(applicationKey(org, application), "REMOVE #keys.#"+k.TextID()+" ADD Version :one", ifExists, item{":one": num(1)}),
			t.set(apiKeyKey(org, application, id), authored(item{attrDoc: encodeDoc(stored), attrRevoked: boolean(true)}, by),
				when("attribute_exists(PK) AND attribute_not_exists(Revoked)", nil)),
			t.set(credentialKey(k.TextID()), item{attrRevoked: boolean(true)}, ifExists))
		if refused.has(0) {
			k = nil // the application was deleted meanwhile
			return true, nil
		}
		return len(refused) == 0, err
	})
	return k, err
}

// TouchKey writes that the credential's key was used, unless a use less than the
// interval ago is written already, and then has the credential say so, so that
// those who read the credential need not try. A deleted key is not an error.
func (t *Table) TouchKey(ctx context.Context, c *account.Credential, interval time.Duration) error {
	now := value.TimeOf(t.now())
	used := item{attrUsed: attribute(now)}
	_, _, err := t.updateItem(ctx, "write a key's last use", t.set(apiKeyKey(c.OrganizationID, c.ApplicationID, c.KeyID), used,
		when("attribute_exists(PK) AND (attribute_not_exists(LastUsedAt) OR LastUsedAt <= :before)", item{":before": attribute(now.Add(-interval))})))
	if err != nil {
		return err
	}
	_, _, err = t.updateItem(ctx, "write a credential's last use", t.set(credentialKey(c.KeyText), used, ifExists))
	return err
}

// Credential reads what a presented key is checked against, by the 8
// characters that name it, and the application it belongs to. Both are read
// by primary key, strongly consistent. The credential is nil when the key
// does not exist, the application when it was deleted.
func (t *Table) Credential(ctx context.Context, textID string) (*account.Credential, *account.Application, error) {
	c, err := read(ctx, t, credentialKey(textID), decodeFound[account.Credential])
	if err != nil || c == nil {
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
	keys := []key{credentialKey(known.KeyText), applicationKey(known.OrganizationID, known.ApplicationID)}
	found, err := t.readMixed(ctx, keys, false)
	if err != nil || len(found) == len(keys) {
		return of[*account.Credential](found, keys[0]), of[*account.Application](found, keys[1]), err
	}
	return t.Credential(ctx, known.KeyText)
}
