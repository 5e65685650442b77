// Command receipts takes records from back offices and tells what became of them.
package main

import "github.com/commerce-integration/service/pkg/app"

func main() { app.Start(app.Receipts) }
