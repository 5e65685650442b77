package app

import (
	"time"

	"github.com/commerce-integration/service/pkg/rest"
	"github.com/commerce-integration/service/pkg/rest/about"
)

// Makers returns every function by the name of its folder.
func Makers() map[string]Maker {
	return map[string]Maker{
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
func Areas() map[string][]rest.Operation {
	base := &Base{Clock: time.Now}
	return map[string][]rest.Operation{
		"developers": developerOperations(base),
		"webhooks":   webhookOperations(base, nil),
		"api":        append(readOperations(base), about.Operations()...),
	}
}

// Operations returns every operation of the service, as [Areas] does.
func Operations() []rest.Operation {
	areas := Areas()
	var all []rest.Operation
	for _, name := range []string{"developers", "webhooks", "api"} {
		all = append(all, areas[name]...)
	}
	return all
}
