package bench_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/commerce-integration/service/pkg/lab/bench"
)

// asChild makes the test binary one of the processes that are measured.
const asChild = "COMMERCE_BENCH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	if err := bench.Child(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
