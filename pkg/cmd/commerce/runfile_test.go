package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunFileIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "not", "there", "yet")
	want := RunFile{BaseURL: "http://127.0.0.1:3000", JWT: "a.b.c", RecordsQueueURL: "http://127.0.0.1:9324/000000000000/RecordsQueue"}
	if err := WriteRunFile(data, &want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRunFile(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("run file (-want +got):\n%s", diff)
	}
	info, err := os.Stat(runFilePath(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("permissions of a file with credentials: got %o, want 600", got)
	}
}

func TestRunFileThatIsNotThereSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	if _, err := ReadRunFile(t.TempDir()); !errors.Is(err, errNoRunFile) {
		t.Errorf("got %v, want %v", err, errNoRunFile)
	}
}
