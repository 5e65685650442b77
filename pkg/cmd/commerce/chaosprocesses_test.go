//go:build emulate && linux

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/chaos"
)

func TestProcessesKeepEveryPromiseThoughEverythingFails(t *testing.T) {
	out := &lockedBuffer{}
	cfg := chaosConfig(t, out)
	cfg.DataDir = t.TempDir()
	shareFunctions(t, filepath.Join(cfg.DataDir, "data"))
	cfg.Events, cfg.Chaos, cfg.Calm, cfg.Restarts, cfg.Retries = 500, 12*time.Second, 8*time.Minute, 1, 1
	cfg.Outage, cfg.Clocks = 3*time.Second, 10*time.Second
	err := chaos.Run(t.Context(), cfg)
	if err != nil || strings.Count(out.String(), "\n  holds ") != 12 {
		t.Errorf("got %v, want twelve promises that hold:\n%s", err, out)
	}
	t.Log(out)
}
