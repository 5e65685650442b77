package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
)

// encodeClient makes the item by which an application is found by its client
// id. Everything else about the client is in the application's own item.
func encodeClient(app *account.Application) item {
	it := clientKey(app.ClientID).newItem(typeClient)
	it[attrOrganization], it[attrApplication] = str(app.OrganizationID.String()), str(app.ID.String())
	return it
}

// ClientByID reads the client with the id, strongly consistent; nil when there
// is none.
func (t *AccountStore) ClientByID(ctx context.Context, clientID value.ID) (*account.Client, error) {
	it, err := t.get(ctx, clientKey(clientID))
	if err != nil || it == nil {
		return nil, err
	}
	org, err := value.ParseID(getString(it, attrOrganization))
	if err != nil {
		return nil, fmt.Errorf("decode client %s: organization: %w", clientID, err)
	}
	id, err := value.ParseID(getString(it, attrApplication))
	if err != nil {
		return nil, fmt.Errorf("decode client %s: application: %w", clientID, err)
	}
	return t.Client(ctx, org, id)
}

// Client reads an application of the organization as a client, strongly
// consistent; nil when there is none.
func (t *AccountStore) Client(ctx context.Context, org, id value.ID) (*account.Client, error) {
	return read(ctx, t.db, applicationKey(org, id), decodeClient)
}

// EventualClient is Client for half of the read units, eventually consistent:
// the client as it was a moment ago, usually less than a second.
func (t *AccountStore) EventualClient(ctx context.Context, org, id value.ID) (*account.Client, error) {
	it, err := t.getItem(ctx, applicationKey(org, id), false)
	if err != nil {
		return nil, err
	}
	return decodeClient(it)
}

// decodeClient reads the client from the item of its application.
func decodeClient(it item) (*account.Client, error) {
	app, err := decodeDoc[account.Application](it)
	if err != nil || app == nil {
		return nil, err
	}
	c := &account.Client{Application: app, TokenScopes: strings.Fields(getString(it, attrTokenScopes))}
	if len(c.TokenScopes) == 0 {
		c.TokenScopes = account.ReadScopes()
	}
	if n := copy(c.Secrets.Current[:], getBinary(it, attrSecretHash)); n != len(c.Secrets.Current) {
		return nil, fmt.Errorf("decode the client of application %s: a hash of %d bytes", app.ID, n)
	}
	copy(c.Secrets.Previous[:], getBinary(it, attrPreviousHash))
	c.Secrets.PreviousUntil = getTime(it, attrPreviousUntil)
	return c, nil
}

// ChangeClient stores what change makes of the application's client and
// returns it, or nil when there is no such application; and the answers that
// keep makes of that client. Change may be called again, with a fresher client,
// and keep after it; an error of either ends the attempt. The write also makes an application of an earlier version
// known by its client id.
func (t *AccountStore) ChangeClient(
	ctx context.Context, org, id value.ID, change func(*account.Client) error, keep ...func(*account.Client) (*idempotency.Kept, error),
) (*account.Client, error) {
	var c *account.Client
	found, err := changeItem(ctx, t.db, "application", applicationKey(org, id), decodeClient,
		func(stored *account.Client, it item) ([]write, error) {
			c = stored
			if err := change(c); err != nil {
				return nil, err
			}
			kept := make([]*idempotency.Kept, len(keep))
			for i := range keep {
				var err error
				if kept[i], err = keep[i](c); err != nil {
					return nil, err
				}
			}
			doc, err := encodeDoc(c.Application.Masked())
			values := item{
				":doc": doc, ":one": num(1), ":read": it[attrItemVersion], ":scopes": str(strings.Join(c.TokenScopes, " ")),
				":hash": binary(c.Secrets.Current[:]), ":previous": binary(c.Secrets.Previous[:]), ":until": num(c.Secrets.PreviousUntil),
			}
			return t.withAnswers([]write{
				t.update(applicationKey(org, id),
					"SET doc = :doc, tokenScopes = :scopes, secretHash = :hash, previousHash = :previous, previousUntil = :until ADD itemVersion :one",
					"itemVersion = :read", values),
				t.put(encodeClient(c.Application), "", nil),
			}, kept), err
		})
	if !found {
		return nil, err
	}
	return c, nil
}
