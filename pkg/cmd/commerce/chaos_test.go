//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/chaos"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// chaosConfig runs the command that the test binary can be.
func chaosConfig(t *testing.T, out *lockedBuffer) chaos.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := tableserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cfg := chaos.Defaults()
	cfg.Command, cfg.Env, cfg.Template = []string{self}, []string{actAsCommand + "=1"}, "../../../template.yaml"
	cfg.BinDir, cfg.Seed, cfg.Out, cfg.Log = bin, 7, out, &lockedBuffer{}
	return cfg
}

// How soon the others' events come is measured by a run on its own; here the
// processor belongs to other tests too, and they have to come.
func TestDeadEndpointsLeaveTheOthersAlone(t *testing.T) {
	t.Parallel()
	out := &lockedBuffer{}
	err := chaos.RunDeadEndpoints(t.Context(), chaosConfig(t, out), chaos.DeadConfig{
		Endpoints: 20, Events: 600, Every: 100 * time.Millisecond, Timeout: 2 * time.Minute, MaxLatency: 2 * time.Minute,
	})
	if err != nil || strings.Count(out.String(), "\n  holds ") != 3 {
		t.Errorf("got %v, want three promises that hold:\n%s", err, out)
	}
	t.Log(out)
}
