// Command ingest applies the records that back offices send.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Ingest) }
