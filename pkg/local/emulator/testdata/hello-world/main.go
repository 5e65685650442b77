// Command hello-world is the least function: what others take longer to start is theirs.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(func() (string, error) { return "Hello, world", nil }) }
