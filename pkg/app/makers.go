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
		"api":        API,
		"ingest":     Ingest,
		"indexer":    Indexer,
	}
}

// Operations returns every operation of the service as it is declared. Its
// handlers have nothing behind them: it is for reading, not for calling.
func Operations() []rest.Operation {
	base := &Base{Clock: time.Now}
	operations := append(developerOperations(base), readOperations(base)...)
	return append(operations, about.Operations()...)
}
