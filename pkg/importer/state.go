package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// State is how far an import has come, kept in a file while it runs.
type State struct {
	// Fingerprint names the source and the target; a state of another import is
	// no state.
	Fingerprint string `json:"fingerprint"`
	// Rows of the source that are dealt with.
	Rows int `json:"rows"`
}

// LoadState reads the file. A file that is not there, or is of another
// import, gives the state of an import that has not begun.
func LoadState(path, fingerprint string) (State, error) {
	fresh := State{Fingerprint: fingerprint}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return fresh, fmt.Errorf("read the import's state: %w", err)
	}
	var stored State
	if err := json.Unmarshal(text, &stored); err != nil {
		return fresh, fmt.Errorf("read the import's state %s: %w (remove the file to start over)", path, err)
	}
	if stored.Fingerprint != fingerprint {
		return fresh, nil
	}
	return stored, nil
}

// Save replaces the file in one step, so that a crash leaves the old state or
// the new one.
func (s State) Save(path string) error {
	next := path + ".next"
	text, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(next, text, 0o600)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("write the import's state: %w", err)
	}
	return nil
}

// RemoveState removes the file of an import that is done.
func RemoveState(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the import's state: %w", err)
	}
	return nil
}
