// Package developers answers the operations on developer applications and their
// API keys, and shows who changed what. An id of another organization is answered exactly as one that
// does not exist, an update applies to the very state that If-Match named, and
// only the answer that creates a secret shows it. The store enforces limits that
// need a count, and deletes what belongs to an application.
package developers

import (
	"context"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
)

// ApplicationStore keeps applications.
type ApplicationStore interface {
	// CreateApplication stores the application with what its tokens may do. It may
	// answer a fault limit_reached.
	CreateApplication(ctx context.Context, organization value.ID, app account.Application, tokenScopes []string, kept ...*idempotency.Kept) error
	// Application returns nil when there is none.
	Application(ctx context.Context, organization, id value.ID) (*account.Application, error)
	Applications(ctx context.Context, organization value.ID) ([]account.Application, error)
	// ChangeApplication stores what change made of the application, if it
	// reports a change, and returns the result; nil when there is none.
	ChangeApplication(ctx context.Context, organization, id value.ID, change func(*account.Application) (bool, error)) (*account.Application, error)
	// DeleteApplication reports whether there was one. check sees it first and sets
	// who deletes it; an error of check keeps it.
	DeleteApplication(ctx context.Context, organization, id value.ID, check func(*account.Application) error) (bool, error)
}

// KeyStore keeps API keys.
type KeyStore interface {
	// CreateKey may answer a fault limit_reached, or not_found when the
	// application is gone.
	CreateKey(ctx context.Context, organization value.ID, key account.APIKey, credential account.Credential, kept ...*idempotency.Kept) error
	Keys(ctx context.Context, organization, application value.ID) ([]account.APIKey, error)
	// RevokeKey returns the key, nil when it does not exist.
	RevokeKey(ctx context.Context, organization, application, id value.ID, by *account.AuditEntry) (*account.APIKey, error)
}

// ClientStore keeps what applications get tokens by.
type ClientStore interface {
	// Client returns nil when the application does not exist.
	Client(ctx context.Context, organization, application value.ID) (*account.Client, error)
	// ChangeClient stores what change makes of the client and returns it, nil
	// when the application does not exist; and the answers that keep makes of it.
	ChangeClient(
		ctx context.Context, organization, application value.ID, change func(*account.Client) error, keep ...func(*account.Client) (*idempotency.Kept, error),
	) (*account.Client, error)
}

// Store keeps all of them.
type Store interface {
	ApplicationStore
	KeyStore
	ClientStore
	GrantStore
	UsageStore
	AuditStore
	FailureStore
}

// area holds what the operations share.
type area struct {
	store Store
	clock func() time.Time
}

func (a *area) now() value.Time { return value.TimeOf(a.clock()) }

// Operations returns every operation of this area.
func Operations(store Store, clock func() time.Time) []api.Operation {
	a := &area{store, clock}
	return append(slices.Concat(a.applicationOperations(), a.clientOperations(), a.keyOperations(), a.grantOperations()),
		a.sessionOperation(), a.usageOperation(), a.failuresOperation(), a.auditOperation())
}
