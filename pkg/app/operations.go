package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/api/docs"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/api/oauth"
	"github.com/commerce-integration/service/pkg/api/portal"
	"github.com/commerce-integration/service/pkg/api/receipts"
	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/api/webhooks"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// API makes the function of the read API, which also answers every path that
// no other function has.
func API(_ context.Context, d *Dependencies) (GatewayFunc, error) {
	return d.serve(d.apiOperations(), nil, nil), nil
}

// Developers makes the function of applications, API keys and applications'
// tokens.
func Developers(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.serve(d.developerOperations(), d.keeper(secrets), d.refresh()), nil
}

// Webhooks makes the function of webhook endpoints and the history.
func Webhooks(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.serve(d.webhookOperations(secrets.Seal), d.keeper(secrets), d.refresh()), nil
}

// Receipts makes the function that takes records from back offices and answers
// what became of them.
func Receipts(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.serve(d.receiptOperations(), d.keeper(secrets), d.refresh()), nil
}

// Portal returns the maker of the function of the portal's page and of the
// documentation, whose Markdown render makes HTML of. It asks for no credentials
// and uses nothing of AWS.
func Portal(render Renderer) NewHandler[GatewayFunc] {
	return func(_ context.Context, d *Dependencies) (GatewayFunc, error) {
		server := api.NewServer(portalOperations(render), api.Config{Caller: callerOf, Clock: d.Clock, Logger: d.Logger})
		return d.behindGateway(server), nil
	}
}

// Renderer makes HTML of Markdown.
type Renderer = func(markdown string) (string, error)

func portalOperations(render Renderer) []api.Operation {
	return append(portal.Operations(), docs.Operations(render)...)
}

// OperationsByFunction returns the operations of each function that the API
// reaches, as they are declared. They are for reading: their handlers have no
// table behind them.
func OperationsByFunction() map[string][]api.Operation {
	d := &Dependencies{Clock: time.Now}
	return map[string][]api.Operation{
		"developers": d.developerOperations(), "webhooks": d.webhookOperations(nil), "api": d.apiOperations(),
		"receipts": d.receiptOperations(), "portal": portalOperations(nil),
	}
}

// Operations returns every operation of the service, as [OperationsByFunction]
// does, but for the portal's: what its files are depends on whether it was built.
func Operations() []api.Operation {
	all := OperationsByFunction()
	return slices.Concat(all["developers"], all["webhooks"], all["receipts"], all["api"], docs.Operations(nil))
}

// recordsShare is the part of memory, one of so many, that keeps records which
// pages have shown.
const recordsShare = 16

func (d *Dependencies) apiOperations() []api.Operation {
	cfg := records.Config{Clock: d.Clock, Lists: d.lists(), CacheBytes: int(d.memory() / recordsShare)}
	return append(records.Operations(d.Table, d.views(), cfg), api.HealthCheck())
}

func (d *Dependencies) developerOperations() []api.Operation {
	tokens := oauth.Config{
		Clock: d.Clock, Signer: apptoken.NewSigner(d.signingSecrets, d.Table, d.Clock), Attempts: ratelimit.New(d.Table, d.Clock),
	}
	return append(developers.Operations(d.Table, d.Clock), oauth.Operations(d.Table, tokens)...)
}

func (d *Dependencies) webhookOperations(seal func(plain []byte, purpose string) string) []api.Operation {
	sender := d.deliveries()
	return webhooks.Operations(d.Table, webhooks.Config{
		Clock: d.Clock, Sender: sender, Backlog: sweeper.NewBacklog(d.Table, sender, d.Clock), Seal: seal,
		History: history{d.views(), d.lists().Deliveries},
		Rules:   webhook.Rules{AllowPrivateTargets: d.Config.AllowPrivateTargets, Refusal: d.outbound().Refusal, ARNs: d.arnRules()},
	})
}

func (d *Dependencies) receiptOperations() []api.Operation {
	return receipts.Operations(d.Table, queue.NewPosts(d.queue(d.Config.RecordsQueueURL)), d.Clock)
}

// history answers queries of the webhook history.
type history struct {
	views measuredQueries
	list  *index.List
}

func (h history) Query(ctx context.Context, org value.ID, q columnar.Query, now bool) (lists.Answer, error) {
	return h.views.Query(ctx, org, h.list, q, now)
}

// keeper keeps the answers to requests that name an idempotency key.
func (d *Dependencies) keeper(secrets *sealed.Box) *idempotency.Keeper {
	return idempotency.New(d.Table, secrets, d.Clock)
}

// refresh brings a principal up to date.
type refresh = func(context.Context, auth.Principal) (auth.Principal, *auth.Denial, error)

// refresh looks at the application that a token names, where the authorizer
// leaves that to the function.
func (d *Dependencies) refresh() refresh { return auth.NewApplications(d.Table, d.Clock).Refresh }

// serve puts operations behind the gateway.
func (d *Dependencies) serve(operations []api.Operation, keeper *idempotency.Keeper, refresh refresh) GatewayFunc {
	server := api.NewServer(operations, api.Config{
		Caller: callerOf, Limiter: ratelimit.New(d.Table, d.Clock), Refresh: refresh, Idempotency: keeper, Clock: d.Clock, Logger: d.Logger,
	})
	return d.behindGateway(server)
}

func (d *Dependencies) behindGateway(server http.Handler) GatewayFunc {
	return d.measuredRequests(gatewayFunc(allowOrigins(d.Config.AllowedOrigins, server), d.Config.BasePath))
}
