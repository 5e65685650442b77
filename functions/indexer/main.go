// Command indexer logs changes for the views that answer lists.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Indexer) }
