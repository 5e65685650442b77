package app

import (
	"time"

	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/httpapi/docs"
)

// Makers returns every function by the name of its folder.
func Makers() map[string]NewHandler {
	return map[string]NewHandler{
		"authorizer": Authorizer,
		"developers": Developers,
		"webhooks":   Webhooks,
		"api":        API,
		"ingest":     Ingest,
		"dispatcher": Dispatcher,
		"indexer":    Indexer,
		"worker":     Worker,
		"sweeper":    Sweeper,
	}
}

// Areas returns the operations of each function that the API reaches, as
// they are declared. Their handlers have nothing behind them: they are for
// reading, not for calling.
func Areas() map[string][]httpapi.Operation {
	base := &Dependencies{Clock: time.Now}
	return map[string][]httpapi.Operation{
		"developers": developerOperations(base),
		"webhooks":   webhookOperations(base, nil),
		"api":        append(readOperations(base), docs.Operations()...),
	}
}

// Operations returns every operation of the service, as [Areas] does.
func Operations() []httpapi.Operation {
	areas := Areas()
	var all []httpapi.Operation
	for _, name := range []string{"developers", "webhooks", "api"} {
		all = append(all, areas[name]...)
	}
	return all
}
