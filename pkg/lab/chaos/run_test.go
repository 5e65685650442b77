//go:build emulate

package chaos_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/chaos"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

func TestTheServiceKeepsEveryPromiseThoughEverythingFails(t *testing.T) {
	bin, err := tableserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program, err := workload.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = chaos.Run(t.Context(), chaos.Config{
		Program: program, Template: "../../../template.yaml", BinDir: bin, Out: &out,
		Seed: 7, Events: 500, Chaos: 12 * time.Second, Calm: 8 * time.Minute, KillEvery: 200 * time.Millisecond, Restarts: 1,
		Faults: 0.15, Outage: 3 * time.Second, Clocks: 10 * time.Second,
	})
	if err != nil || strings.Count(out.String(), "\n  holds ") != 9 {
		t.Errorf("got %v, want nine promises that hold:\n%s", err, &out)
	}
	t.Log(&out)
}
