// Command worker delivers webhooks.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Worker) }
