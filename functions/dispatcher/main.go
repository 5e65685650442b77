// Command dispatcher turns changes of records into deliveries.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Dispatcher) }
