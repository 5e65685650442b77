package app

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/api/docs"
	"github.com/commerce-integration/service/pkg/api/failures"
	"github.com/commerce-integration/service/pkg/api/fields"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/api/oauth"
	"github.com/commerce-integration/service/pkg/api/portal"
	"github.com/commerce-integration/service/pkg/api/receipts"
	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/api/sources"
	"github.com/commerce-integration/service/pkg/api/webhooks"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// API makes the function of the read API, which also answers every path that
// no other function has.
func API(_ context.Context, d *Dependencies) (GatewayFunc, error) {
	return d.serve(d.apiOperations(), api.Config{}), nil
}

// Developers makes the function of applications, API keys and applications'
// tokens.
func Developers(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
	return d.serveManagers(ctx, func(answers *sealed.Box) []api.Operation { return d.developerOperations(answers) })
}

// Webhooks returns the maker of the function of webhook endpoints and the history, and
// of the tools of language models, which read it, too: what those ask of records takes
// nothing from the function of the read API.
func Webhooks(tools Tools) NewHandler[GatewayFunc] {
	return func(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
		return d.serveManagers(ctx, func(secrets *sealed.Box) []api.Operation { return d.webhookOperations(secrets.Seal, tools) })
	}
}

// Tools makes the operation of the tools, which asks the parts. No other function is
// linked with the protocol.
type Tools = func(parts []api.Operation, allowsOrigin func(*http.Request) bool) api.Operation

// Receipts makes the function that takes records from back offices and shops and
// answers what became of them.
func Receipts(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
	return d.serveManagers(ctx, func(secrets *sealed.Box) []api.Operation { return d.receiptOperations(secrets) })
}

// Portal returns the maker of the function of the portal's page and of the
// documentation, whose Markdown render makes HTML of. It asks for no credentials
// and uses nothing of AWS.
func Portal(render Renderer) NewHandler[GatewayFunc] {
	return func(_ context.Context, d *Dependencies) (GatewayFunc, error) {
		signIn := portal.SignIn{
			Issuer: d.Config.JWTIssuer, Audience: d.Config.JWTAudience,
			ClientID: d.Config.PortalClientID, Scope: strings.ReplaceAll(d.Config.PortalScope, ",", " "), TokenOrigin: d.Config.PortalTokenOrigin,
		}
		embedding, err := portal.ParseEmbedding(d.Config.PortalFrames, d.Config.PortalBrand)
		if err != nil {
			return nil, err
		}
		return d.behindGateway(portalOperations(signIn, embedding, render), api.Config{}), nil
	}
}

// Renderer makes HTML of Markdown.
type Renderer = func(markdown string) (string, error)

func portalOperations(signIn portal.SignIn, embedding portal.Embedding, render Renderer) []api.Operation {
	return append(portal.Operations(signIn, embedding), docs.Operations(render)...)
}

// recordsShare is the part of memory, one of so many, that keeps records which
// pages have shown.
const recordsShare = 16

func (d *Dependencies) apiOperations() []api.Operation {
	return append(d.recordOperations(d.views()), api.HealthCheck())
}

func (d *Dependencies) recordOperations(cache *views.Cache) []api.Operation {
	return records.Operations(d.Table, cache, records.Config{
		Clock: d.Clock, Lists: d.lists(), CacheBytes: int(d.memory() / recordsShare),
		Fields: index.NewFieldCache(d.Table, views.Freshness, d.Clock),
	})
}

func (d *Dependencies) developerOperations(answers *sealed.Box) []api.Operation {
	tokens := oauth.Config{
		Clock: d.Clock, Signer: apptoken.NewSigner(d.signingSecrets, d.Table, d.Clock), Attempts: ratelimit.New(d.Table, d.Clock),
		Answers: answers,
	}
	return append(developers.Operations(d.Table, d.Clock), oauth.Operations(d.Table, tokens)...)
}

func (d *Dependencies) webhookOperations(seal func(plain []byte, purpose string) string, tools Tools) []api.Operation {
	sender, cache := d.deliveries(), d.views()
	hooks := webhooks.Operations(d.Table, webhooks.Config{
		Clock: d.Clock, Sender: sender, Backlog: sweeper.NewBacklog(d.Table, sender, d.Clock), Seal: seal,
		History: history{cache, d.lists().Deliveries},
		Rules:   webhook.Rules{AllowPrivateTargets: d.Config.AllowPrivateTargets, Refusal: d.outbound().Refusal, ARNs: d.arnRules()},
	})
	asked := tools(slices.Concat(d.recordOperations(cache), hooks), allowsOrigin(d.Config.AllowedOrigins))
	return slices.Concat(fields.Operations(d.Table, d.lists(), d.Clock), hooks, []api.Operation{asked})
}

func (d *Dependencies) receiptOperations(secrets *sealed.Box) []api.Operation {
	posts := queue.NewPosts(d.queue(d.Config.RecordsQueueURL))
	return append(receipts.Operations(d.Table, posts, d.Clock), sources.Operations(d.Table, posts, secrets, d.Clock)...)
}

// history answers queries of the webhook history.
type history struct {
	views *views.Cache
	list  *index.List
}

func (h history) Query(ctx context.Context, org value.ID, q columnar.Query, now bool) (lists.Answer, error) {
	return h.views.Query(ctx, org, h.list, q, now)
}

func (h history) QueryWeighed(ctx context.Context, org value.ID, q columnar.Query, now bool, admit func(units int) error) (lists.Answer, error) {
	return h.views.QueryWeighed(ctx, org, h.list, q, now, admit)
}

// serveManagers serves operations that change something. Requests may name
// themselves by an idempotency key, and the authorizer leaves it to the function to
// look at the application that a token names.
func (d *Dependencies) serveManagers(ctx context.Context, operations func(*sealed.Box) []api.Operation) (GatewayFunc, error) {
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.serve(operations(secrets), api.Config{
		Refresh: auth.NewApplications(d.Table, d.Clock).Refresh, Idempotency: idempotency.New(d.Table, secrets, d.Clock),
	}), nil
}

// serve puts operations behind the gateway.
func (d *Dependencies) serve(operations []api.Operation, cfg api.Config) GatewayFunc {
	cfg.Limiter, cfg.OrganizationLimit = ratelimit.New(d.Table, d.Clock), d.Config.OrganizationRateLimit
	cfg.Failures = failures.New(d.Table, d.Clock, d.Logger)
	return d.behindGateway(operations, cfg)
}

func (d *Dependencies) behindGateway(operations []api.Operation, cfg api.Config) GatewayFunc {
	cfg.Caller, cfg.Clock, cfg.Logger = callerOf, d.Clock, d.Logger
	server := allowOrigins(d.Config.AllowedOrigins, api.NewServer(operations, cfg))
	return d.measuredRequests(gatewayFunc(server, d.Config.BasePath))
}
