package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
)

// clientItem is the item by which an application is found by its client id.
// Everything else about the client is in the application's own item.
type clientItem struct{ OrganizationID, ApplicationID value.ID }

// ClientByID reads the client with the id, strongly consistent; nil when there
// is none.
func (t *Table) ClientByID(ctx context.Context, clientID value.ID) (*account.Client, error) {
	c, err := read(ctx, t, clientKey(clientID), decodeFound[clientItem])
	if err != nil || c == nil {
		return nil, err
	}
	return t.Client(ctx, c.OrganizationID, c.ApplicationID)
}

// Client reads an application of the organization as a client, strongly
// consistent; nil when there is none.
func (t *Table) Client(ctx context.Context, org, id value.ID) (*account.Client, error) {
	return read(ctx, t, applicationKey(org, id), decodeClient)
}

// EventualClient is Client for half of the read units, eventually consistent:
// the client as it was a moment ago, usually less than a second.
func (t *Table) EventualClient(ctx context.Context, org, id value.ID) (*account.Client, error) {
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
	stored, err := decode[applicationItem](it)
	if err != nil {
		return nil, err
	}
	return &account.Client{Application: app, TokenScopes: stored.TokenScopes, Secrets: stored.Secrets, Public: stored.Public}, nil
}

// ChangeClient stores what change makes of the application's client and
// returns it, or nil when the application does not exist; and the answers that
// keep makes of that client. Change may be called again, with a fresher client,
// and keep after it; an error of either ends the attempt.
func (t *Table) ChangeClient(
	ctx context.Context, org, id value.ID, change func(*account.Client) error, keep ...func(*account.Client) (*idempotency.Kept, error),
) (*account.Client, error) {
	return t.changeClient(ctx, org, id, func(c *account.Client) (bool, error) { return true, change(c) }, keep...)
}

// changeClient stores what change makes of an application and its client, and the
// answers to keep, when change reports that something differs. It returns nil when
// there is none.
func (t *Table) changeClient(
	ctx context.Context, org, id value.ID, change func(*account.Client) (bool, error), keep ...func(*account.Client) (*idempotency.Kept, error),
) (*account.Client, error) {
	var c *account.Client
	found, err := changeItem(ctx, t, "application", applicationKey(org, id), decodeClient,
		func(stored *account.Client, it item) ([]write, error) {
			c = stored
			if changed, err := change(c); err != nil || !changed {
				return nil, err
			}
			kept := make([]*idempotency.Kept, len(keep))
			for i := range keep {
				var err error
				if kept[i], err = keep[i](c); err != nil {
					return nil, err
				}
			}
			version := getNumber(it, attrItemVersion)
			attributes := item{
				attrDoc: encodeDoc(c.Application.Masked()), attrItemVersion: num(version + 1),
				"TokenScopes": attribute(c.TokenScopes), "Secrets": attribute(c.Secrets), "Public": boolean(c.Public),
			}
			w := t.set(applicationKey(org, id), authored(attributes, c.Application.ChangedBy), ifEqual(attrItemVersion, version))
			return t.withAnswers([]write{w}, kept), nil
		})
	if !found {
		return nil, err
	}
	return c, nil
}
