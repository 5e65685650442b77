// Command portal serves the portal's files, leads browsers from / to it, and
// serves the documentation.
package main

import (
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/httpapi/docs/markdown"
)

func main() { app.StartWithoutTable(app.Portal(markdown.HTML)) }
