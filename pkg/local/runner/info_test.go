package runner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInfoIsReadAsItWasWritten(t *testing.T) {
	data := t.TempDir()
	if _, err := ReadInfo(data); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before it is written: got %v, want %v", err, ErrNotRunning)
	}
	want := &Info{BaseURL: "http://127.0.0.1:3000", JWT: "a.b.c", RecordsQueueURL: "http://127.0.0.1:3001/000000000000/RecordsQueue"}
	if err := WriteInfo(data, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadInfo(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-written +read):\n%s", diff)
	}
	file, err := os.Stat(filepath.Join(data, infoName))
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Mode().Perm(); got != 0o600 {
		t.Errorf("permissions of a file with credentials: got %o, want 600", got)
	}
}
