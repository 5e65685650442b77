// Command developers answers the operations on applications and API keys.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Developers) }
