// Command portal serves the portal's files, leads browsers from / to it, and
// serves the documentation.
package main

import (
	"github.com/commerce-integration/service/pkg/api/docs/markdown"
	"github.com/commerce-integration/service/pkg/app"
)

func main() { app.StartWithoutTable(app.Portal(markdown.HTML)) }
