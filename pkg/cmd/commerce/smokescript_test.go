package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// smoke asks the service what "make smoke" asks.
func (s *service) smoke(t *testing.T, key string) (string, error) {
	t.Helper()
	needs(t, "python3")
	cmd := exec.CommandContext(t.Context(), "python3", "../../../.tools/smoke.py", s.BaseURL)
	cmd.Env = append(os.Environ(), "KEY="+key, "TOKEN="+s.JWT)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSmokeEndsWithTheFirstWrongAnswer(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	if out, err := s.smoke(t, s.APIKey); err != nil || !strings.Contains(out, "200 "+s.BaseURL+"/developers/applications") {
		t.Errorf("a service that is well: %v, %s", err, out)
	}
	out, err := s.smoke(t, "of nobody")
	if lines := strings.Split(out, "\n"); err == nil || !strings.HasPrefix(lines[2], "401 ") || !strings.HasPrefix(lines[3], "want 200 with data, meta, got {") {
		t.Errorf("a refused key: %v, %s", err, out)
	}
}
