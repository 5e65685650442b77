package app

import (
	"context"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/httpapi/developers"
	"github.com/commerce-integration/service/pkg/httpapi/docs"
	"github.com/commerce-integration/service/pkg/httpapi/records"
	"github.com/commerce-integration/service/pkg/httpapi/webhooks"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/lists/views"
	"github.com/commerce-integration/service/pkg/ratelimit"
	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// API makes the function of the read API, which also answers every path that
// no other function has.
func API(_ context.Context, base *Dependencies) (any, error) {
	return base.serve(append(readOperations(base), docs.Operations()...)), nil
}

func readOperations(base *Dependencies) []httpapi.Operation {
	return records.Operations(base.Table, base.views(), records.Config{Clock: base.Clock, Lists: base.lists()})
}

// Developers makes the function of applications and API keys.
func Developers(_ context.Context, base *Dependencies) (any, error) {
	return base.serve(developerOperations(base)), nil
}

func developerOperations(base *Dependencies) []httpapi.Operation {
	return developers.Operations(base.Table, developers.Config{Clock: base.Clock})
}

// Webhooks makes the function of webhook endpoints and the history.
func Webhooks(ctx context.Context, base *Dependencies) (any, error) {
	secrets, err := base.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return base.serve(webhookOperations(base, secrets.Seal)), nil
}

func webhookOperations(base *Dependencies, seal func(plain []byte, purpose string) string) []httpapi.Operation {
	sender := base.deliveries()
	return webhooks.Operations(base.Table, webhooks.Config{
		Clock: base.Clock, Sender: sender, Backlog: sweeper.NewBacklog(base.Table, sender, base.Clock), Seal: seal,
		History: history{base.views(), base.lists().Deliveries},
		Rules:   webhook.Rules{AllowPrivateTargets: base.Config.AllowPrivateTargets, Refusal: base.outbound().Refusal},
	})
}

// history answers queries of the webhook history.
type history struct {
	views *views.Cache
	list  *index.List
}

func (h history) Query(ctx context.Context, org value.ID, q columnar.Query) (columnar.Result, error) {
	return h.views.Query(ctx, org, h.list, q)
}

func (b *Dependencies) views() *views.Cache {
	return views.NewCache(b.Table, views.Config{MaxBytes: b.viewBytes(), Clock: b.Clock, Start: b.indexJobs(), Logger: b.Logger})
}

func (b *Dependencies) lists() *index.Lists { return index.NewLists(b.Table, dynamo.Shards) }

// serve puts operations behind the gateway.
func (b *Dependencies) serve(operations []httpapi.Operation) GatewayFunc {
	return gatewayFunc(httpapi.NewServer(operations, httpapi.Config{
		Caller: callerOf, Limiter: ratelimit.New(b.Table, b.Clock), Clock: b.Clock, Logger: b.Logger,
	}))
}
