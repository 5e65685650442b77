//go:build emulate

package chaos_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/chaos"
)

func TestTheServiceKeepsEveryPromiseThoughEverythingFails(t *testing.T) {
	var out bytes.Buffer
	err := chaos.Run(t.Context(), chaos.Config{Seed: 7, Events: 500, Chaos: 16 * time.Second, Out: &out})
	if err != nil || strings.Count(out.String(), "\n  holds ") != 8 {
		t.Errorf("got %v, want eight promises that hold:\n%s", err, &out)
	}
	t.Log(&out)
}
