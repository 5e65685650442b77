package app

import (
	"context"

	"github.com/commerce-integration/service/pkg/indexing"
	"github.com/commerce-integration/service/pkg/ratelimit"
	"github.com/commerce-integration/service/pkg/rest"
	"github.com/commerce-integration/service/pkg/rest/about"
	"github.com/commerce-integration/service/pkg/rest/developers"
	"github.com/commerce-integration/service/pkg/rest/read"
)

// API makes the function of the read API, which also answers every path that
// no other function has.
func API(_ context.Context, base *Base) (any, error) {
	return base.serve(append(readOperations(base), about.Operations()...)), nil
}

func readOperations(base *Base) []rest.Operation {
	views := indexing.NewViews(base.Table, indexing.Config{MaxBytes: base.viewBytes(), Clock: base.Clock})
	return read.Operations(base.Table, views, read.Config{
		Clock: base.Clock, Lists: indexing.RecordLists(base.Table), Deletions: indexing.DeletionList(base.Table),
	})
}

// Developers makes the function of applications and API keys.
func Developers(_ context.Context, base *Base) (any, error) {
	return base.serve(developerOperations(base)), nil
}

func developerOperations(base *Base) []rest.Operation {
	return developers.Operations(base.Table, developers.Config{Clock: base.Clock})
}

// serve puts operations behind the gateway.
func (b *Base) serve(operations []rest.Operation) GatewayFunc {
	return gatewayFunc(rest.NewServer(operations, rest.Config{
		Caller: callerOf, Limiter: ratelimit.New(b.Table, b.Clock), Clock: b.Clock, Logger: b.Logger,
	}))
}
