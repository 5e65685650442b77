//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATableServerThatDoesNotExistIsRefused(t *testing.T) {
	_, _, err := runCommand(t.Context(), "run", "--table-server", "oracle")
	if want := "must be one of dynoxide, dynamodb-local"; exitCode(err) != exitTrouble || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestProcessesOutsideOfACheckoutAreRefused(t *testing.T) {
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
	if want := "which needs Go and a checkout of the repository"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
