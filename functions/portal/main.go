// Command portal serves the portal's files, and leads browsers from / to it.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.StartWithoutTable(app.Portal) }
