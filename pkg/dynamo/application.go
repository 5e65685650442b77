package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// applicationItem has the attributes of an application's item other than its doc.
type applicationItem struct {
	Version     int64 // rises with every write to the item
	TokenScopes []string
	Secrets     account.ClientSecrets
	Public      bool
	// Keys maps the text id of each key that is not revoked to when it expires (ms,
	// 0: never). The limit of active keys counts them: a condition can see the map
	// exactly.
	Keys map[string]int64 `dynamodbav:"keys"`
}

// The organization's counter holds applications and endpoints. Both change only
// in the transaction that makes or removes what they count.
const (
	attrItemVersion = "Version"
	attrApplication = "ApplicationID"
)

// CreateApplication stores a new application of the organization, what its tokens
// may do, at least one scope, and the hash of its client secret, and the answer
// that shows it, if one is kept. A fault limit_reached means that there are [account.MaxApplications] already.
func (t *Table) CreateApplication(ctx context.Context, org value.ID, app account.Application, tokenScopes []string, kept ...*idempotency.Kept) error {
	it := encode(applicationKey(org, app.ID), typeApplication, applicationItem{
		Version: 1, TokenScopes: tokenScopes, Secrets: account.ClientSecrets{Current: account.HashSecret(app.ClientSecret)}, Keys: map[string]int64{},
	})
	authored(it, app.ChangedBy)[attrDoc] = encodeDoc(app.Masked())
	writes := []write{
		t.put(it, ifAbsent),
		t.countOne(countKey(org), "applications", account.MaxApplications),
		t.put(encode(clientKey(app.ClientID), typeClient, clientItem{app.OrganizationID, app.ID}), ifAbsent),
	}
	refused, err := t.transact(ctx, "create an application", t.withAnswers(writes, kept)...)
	if refused.has(1) {
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an organization can have %d applications: delete one first", account.MaxApplications)
	}
	return orLost(refused, len(writes), kept, err)
}

// countOne is the write that counts one more of what an organization can have so
// many of.
func (t *Table) countOne(k key, what string, most int) write {
	return t.update(k, "SET t = :type ADD "+what+" :one",
		when("attribute_not_exists("+what+") OR "+what+" < :max", item{":max": num(most)}), item{":type": str(typeCount), ":one": num(1)})
}

// Application reads one application, strongly consistent; nil when the
// organization has none with the id.
func (t *Table) Application(ctx context.Context, org, id value.ID) (*account.Application, error) {
	return read(ctx, t, applicationKey(org, id), decodeDoc[account.Application])
}

// Applications reads every application of the organization, in the order of
// their ids.
func (t *Table) Applications(ctx context.Context, org value.ID) ([]account.Application, error) {
	return collect(ctx, t, partition(developerPartition(org), applicationPrefix), 0, docOf[account.Application])
}

// ChangeApplication applies change to the application and stores it when
// change reports that something differs. It returns the application as it is
// then, or nil when there is none. Change may be called again, with a fresher
// application; an error of its own ends the attempt.
func (t *Table) ChangeApplication(ctx context.Context, org, id value.ID, change func(*account.Application) (bool, error)) (*account.Application, error) {
	c, err := t.changeClient(ctx, org, id, func(c *account.Client) (bool, error) { return change(c.Application) })
	if c == nil {
		return nil, err
	}
	return c.Application, nil
}

// DeleteApplication deletes the application, its endpoints and the
// credentials of its keys in one transaction, so that nothing usable is ever
// left of it. It reports whether there was one. check sees the application first
// and sets who deletes it; an error of it ends the attempt.
func (t *Table) DeleteApplication(ctx context.Context, org, id value.ID, check func(*account.Application) error) (bool, error) {
	found, err := changeItem(ctx, t, "application", applicationKey(org, id), decodeDoc[account.Application],
		func(app *account.Application, it item) ([]write, error) {
			if err := check(app); err != nil {
				return nil, err
			}
			return t.deletion(ctx, org, app, it)
		})
	if !found {
		return false, err
	}
	return true, t.deleteKeys(ctx, org, id)
}

// deletion lists the writes that delete an application as it was read: at
// most 3, 50 endpoints and 20 credentials, of the 100 that a transaction
// takes. A key or an endpoint that is made meanwhile changes the item's
// version and so fails the transaction.
func (t *Table) deletion(ctx context.Context, org value.ID, app *account.Application, it item) ([]write, error) {
	stored, err := decode[applicationItem](it)
	if err != nil {
		return nil, err
	}
	writes := []write{
		t.remove(applicationKey(org, app.ID), ifEqual(attrItemVersion, stored.Version)),
		t.remove(clientKey(app.ClientID), always),
	}
	endpoints, err := t.endpointsOf(ctx, org, app.ID)
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		writes = append(writes, t.deletionMark(org, e, nil, always))
	}
	for textID := range stored.Keys {
		writes = append(writes, t.remove(credentialKey(textID), always))
	}
	count, values := "ADD applications :app, endpoints :endpoints", item{":app": num(-1), ":endpoints": num(-len(endpoints))}
	if app.ChangedBy != nil {
		count, values[":by"] = "SET changedBy = :by "+count, encodeDoc(app.ChangedBy)
	}
	return append(writes, t.update(countKey(org), count, always, values)), nil
}

// deleteKeys removes the keys of a deleted application, the remaining credentials
// of expired and revoked ones, and the grants to it. None of them could be used:
// a credential without its application is refused.
func (t *Table) deleteKeys(ctx context.Context, org, application value.ID) error {
	keys, err := collect(ctx, t, partition(apiKeyPartition(org, application), ""), 0, decodeKey)
	if err != nil {
		return err
	}
	grants, err := t.Grants(ctx, org, application)
	if err != nil {
		return err
	}
	var gone []ItemRef
	for _, k := range keys {
		gone = append(gone, ItemRef{apiKeyKey(org, application, k.ID)}, ItemRef{credentialKey(k.TextID())})
	}
	for i := range grants {
		gone = append(gone, ItemRef{userGrantKey(&grants[i])}, ItemRef{grantKey(org, application, grants[i].ID)})
	}
	return t.RemoveItems(ctx, gone)
}
