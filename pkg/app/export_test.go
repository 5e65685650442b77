package app

import (
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/docs"
	"github.com/commerce-integration/service/pkg/api/portal"
	"github.com/commerce-integration/service/pkg/api/tools"
)

// OperationsByFunction returns the operations of each function that the API
// reaches, as they are declared. They are for reading: their handlers have no
// table behind them.
func OperationsByFunction() map[string][]api.Operation {
	d := &Dependencies{Clock: time.Now}
	return map[string][]api.Operation{
		"developers": d.developerOperations(nil), "webhooks": d.webhookOperations(nil, tools.Operation), "api": d.apiOperations(),
		"receipts": d.receiptOperations(nil), "portal": portalOperations(portal.SignIn{}, portal.Embedding{}, nil),
	}
}

// Operations returns every operation of the service, as [OperationsByFunction]
// does, but for the portal's: what its files are depends on whether it was built.
func Operations() []api.Operation {
	all := OperationsByFunction()
	return slices.Concat(all["developers"], all["webhooks"], all["receipts"], all["api"], docs.Operations(nil))
}
