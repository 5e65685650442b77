// Command sweeper does, every minute, what no message does.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Sweeper) }
