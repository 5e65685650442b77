package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// actAsCommand in the environment makes the test binary the command itself,
// so that tests run and kill real processes of what they were built from.
const actAsCommand = "COMMERCE_TEST_ACT_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(actAsCommand) != "" {
		main()
		return
	}
	os.Args[0] = "commerce" // as which tests call it
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("8") // they wait for services more than they compute
	}
	// The tests' services start their own servers, whatever the environment.
	for _, name := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"} {
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: the shared service:", err)
		code = 1
	}
	for _, leak := range watched.Leaks() {
		fmt.Fprintln(os.Stderr, "FAIL: a secret leaked:", leak)
		code = 1
	}
	os.Exit(code)
}
