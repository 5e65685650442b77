// Command webhooks answers the operations on webhook endpoints and their history, and
// the tools of language models.
package main

import (
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
)

func main() { app.Start(app.Webhooks(tools.Operation)) }
