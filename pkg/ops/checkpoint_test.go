package ops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACheckpointIsReadAsItWasSaved(t *testing.T) {
	type state struct{ Rows int }
	c := Checkpoint(filepath.Join(t.TempDir(), "new", "state.json"))
	got := state{1}
	if err := c.Load(&got); err != nil || got.Rows != 1 {
		t.Errorf("without a file: got %+v and %v, want the state as it was", got, err)
	}
	if err := c.Save(state{7}); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(&got); err != nil || got.Rows != 7 {
		t.Errorf("got %+v and %v, want row 7", got, err)
	}
	if err := os.WriteFile(string(c), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(&got); err == nil || !strings.Contains(err.Error(), "remove the file to start over") {
		t.Errorf("a torn file: got %v, want the way to start over", err)
	}
	for range 2 {
		if err := c.Remove(); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
}
