// Command webhooks answers the operations on webhook endpoints and their history.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Webhooks) }
