// Command api answers the read API and everything that no other function does.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.API) }
