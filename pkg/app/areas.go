package app

import (
	"context"

	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/indexing"
	"github.com/commerce-integration/service/pkg/ratelimit"
	"github.com/commerce-integration/service/pkg/rest"
	"github.com/commerce-integration/service/pkg/rest/about"
	"github.com/commerce-integration/service/pkg/rest/developers"
	"github.com/commerce-integration/service/pkg/rest/read"
	"github.com/commerce-integration/service/pkg/rest/webhooks"
	"github.com/commerce-integration/service/pkg/sweep"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// API makes the function of the read API, which also answers every path that
// no other function has.
func API(_ context.Context, base *Base) (any, error) {
	return base.serve(append(readOperations(base), about.Operations()...)), nil
}

func readOperations(base *Base) []rest.Operation {
	return read.Operations(base.Table, base.views(), read.Config{Clock: base.Clock, Lists: base.lists()})
}

// Developers makes the function of applications and API keys.
func Developers(_ context.Context, base *Base) (any, error) {
	return base.serve(developerOperations(base)), nil
}

func developerOperations(base *Base) []rest.Operation {
	return developers.Operations(base.Table, developers.Config{Clock: base.Clock})
}

// Webhooks makes the function of webhook endpoints and the history.
func Webhooks(ctx context.Context, base *Base) (any, error) {
	secrets, err := base.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return base.serve(webhookOperations(base, secrets.Seal)), nil
}

func webhookOperations(base *Base, seal func(plain []byte, purpose string) string) []rest.Operation {
	sender := base.deliveries()
	return webhooks.Operations(base.Table, webhooks.Config{
		Clock: base.Clock, Sender: sender, Backlog: sweep.NewBacklog(base.Table, sender, base.Clock), Seal: seal,
		History: history{base.views(), base.lists().Events},
		Rules:   webhook.Rules{AllowPrivateTargets: base.Config.AllowPrivateTargets, Refusal: base.outbound().Refusal},
	})
}

// history answers queries of the webhook history.
type history struct {
	views *indexing.Views
	list  *indexing.List
}

func (h history) Query(ctx context.Context, org value.ID, q index.Query) (index.Result, error) {
	return h.views.Query(ctx, org, h.list, q)
}

func (b *Base) views() *indexing.Views {
	return indexing.NewViews(b.Table, indexing.Config{MaxBytes: b.viewBytes(), Clock: b.Clock, Start: b.indexJobs(), Logger: b.Logger})
}

func (b *Base) lists() *indexing.Lists { return indexing.NewLists(b.Table) }

// serve puts operations behind the gateway.
func (b *Base) serve(operations []rest.Operation) GatewayFunc {
	return gatewayFunc(rest.NewServer(operations, rest.Config{
		Caller: callerOf, Limiter: ratelimit.New(b.Table, b.Clock), Clock: b.Clock, Logger: b.Logger,
	}))
}
