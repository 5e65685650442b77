// Command authorizer turns credentials into a principal for API Gateway.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Authorizer) }
