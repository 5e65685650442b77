//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/faults"
)

func TestFaultsAreGivenInPercent(t *testing.T) {
	for text, want := range map[string]faults.Rates{
		"throttle=5":                {faults.Throttle: 0.05},
		"throttle=5, timeout=0.5":   {faults.Throttle: 0.05, faults.Timeout: 0.005},
		"all=100,delay=0,timeout=0": without(faults.Every(1), faults.Delay, faults.Timeout),
	} {
		got, err := parseFaults(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("--faults %s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// without sets some of the rates to 0.
func without(rates faults.Rates, kinds ...faults.Fault) faults.Rates {
	for _, kind := range kinds {
		rates[kind] = 0
	}
	return rates
}

func TestFaultsThatDoNotExistAreRefused(t *testing.T) {
	for flag, want := range map[string]string{
		"throttle=101": "want kinds with their percentages", "throttle": "want kinds with their percentages", "=1": `there is no ""`,
		"hunger=1": `there is no "hunger"; there are delay, `,
	} {
		if _, _, err := runCommand(t.Context(), "run", "--faults", flag); exitCode(err) != exitTrouble || !strings.Contains(err.Error(), want) {
			t.Errorf("--faults %s: got %v, want %q", flag, err, want)
		}
	}
}

func TestClocksNeedProcesses(t *testing.T) {
	for _, args := range [][]string{{"--clocks", "5m"}, {"--clocks", "-5m", "--processes"}} {
		if _, _, err := runCommand(t.Context(), append([]string{"run"}, args...)...); exitCode(err) != exitTrouble || !strings.Contains(err.Error(), "needs --processes") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

func TestATableServerThatDoesNotExistIsRefused(t *testing.T) {
	_, _, err := runCommand(t.Context(), "run", "--table-server", "oracle")
	if want := "--table-server oracle: must be one of dynoxide, dynamodb-local"; exitCode(err) != exitTrouble || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestFaultsReachFunctionsOfThisProcessToo(t *testing.T) {
	s := newOwnService(t)
	s.start(t, "--faults", "throttle=100", "--seed", "3")
	if resp, body := s.user(t, http.MethodGet, "/developers/applications", ""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("with a table that throttles everything: got %d %s, want 503", resp.StatusCode, body)
	}
	s.stop(t)
	if out := s.output.String(); !strings.Contains(out, "Faults throttle=100 with --seed 3\n") || !strings.Contains(out, "Faults of seed 3:\nrequests: map[") {
		t.Errorf("output: got %q, want the faults that were asked for and those that happened", out)
	}
}

func TestProcessesWithoutBinariesAreRefused(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(dir, "template.yaml")
	if err := os.WriteFile(template, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newOwnService(t)
	got := refused(t, nil, "run", "--processes", "--addr", s.addr, "--data", s.data, "--template", template)
	if want := dir + " is no checkout of the repository, and " + filepath.Join(dir, "dist", "api", "bootstrap") + " is not there; run make build ARCH="; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
