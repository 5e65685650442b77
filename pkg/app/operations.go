package app

import (
	"context"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/httpapi/developers"
	"github.com/commerce-integration/service/pkg/httpapi/docs"
	"github.com/commerce-integration/service/pkg/httpapi/records"
	"github.com/commerce-integration/service/pkg/httpapi/webhooks"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ratelimit"
	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// API makes the function of the read API, which also answers every path that
// no other function has.
func API(_ context.Context, d *Dependencies) (GatewayFunc, error) {
	return d.serve(d.apiOperations()), nil
}

// Developers makes the function of applications and API keys.
func Developers(_ context.Context, d *Dependencies) (GatewayFunc, error) {
	return d.serve(d.developerOperations()), nil
}

// Webhooks makes the function of webhook endpoints and the history.
func Webhooks(ctx context.Context, d *Dependencies) (GatewayFunc, error) {
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.serve(d.webhookOperations(secrets.Seal)), nil
}

// OperationsByFunction returns the operations of each function that the API
// reaches, as they are declared. They are for reading: their handlers have no
// table behind them.
func OperationsByFunction() map[string][]httpapi.Operation {
	d := &Dependencies{Clock: time.Now}
	return map[string][]httpapi.Operation{
		"developers": d.developerOperations(), "webhooks": d.webhookOperations(nil), "api": d.apiOperations(),
	}
}

// Operations returns every operation of the service, as [OperationsByFunction]
// does.
func Operations() []httpapi.Operation {
	all := OperationsByFunction()
	return slices.Concat(all["developers"], all["webhooks"], all["api"])
}

func (d *Dependencies) apiOperations() []httpapi.Operation {
	cfg := records.Config{Clock: d.Clock, Lists: d.lists()}
	return append(records.Operations(d.Table, d.views(), cfg), docs.Operations()...)
}

func (d *Dependencies) developerOperations() []httpapi.Operation {
	return developers.Operations(d.Table, developers.Config{Clock: d.Clock})
}

func (d *Dependencies) webhookOperations(seal func(plain []byte, purpose string) string) []httpapi.Operation {
	sender := d.deliveries()
	return webhooks.Operations(d.Table, webhooks.Config{
		Clock: d.Clock, Sender: sender, Backlog: sweeper.NewBacklog(d.Table, sender, d.Clock), Seal: seal,
		History: history{d.views(), d.lists().Deliveries},
		Rules:   webhook.Rules{AllowPrivateTargets: d.Config.AllowPrivateTargets, Refusal: d.outbound().Refusal},
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

// serve puts operations behind the gateway.
func (d *Dependencies) serve(operations []httpapi.Operation) GatewayFunc {
	return gatewayFunc(httpapi.NewServer(operations, httpapi.Config{
		Caller: callerOf, Limiter: ratelimit.New(d.Table, d.Clock), Clock: d.Clock, Logger: d.Logger,
	}))
}
