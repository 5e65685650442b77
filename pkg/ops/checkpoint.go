package ops

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// Checkpoint is the path of a JSON file with the state from which a command goes
// on. With an empty path nothing is kept.
type Checkpoint string

// CheckpointOf is where a command keeps its state, by all that its result
// depends on, so that no other command resumes from there.
func CheckpointOf(dataDir, command string, parts ...any) Checkpoint {
	sum := sha256.Sum256(fmt.Appendln(nil, parts...))
	return Checkpoint(filepath.Join(dataDir, command+"-"+hex.EncodeToString(sum[:])+".json"))
}

// Load reads the file into state, which it leaves alone when there is none.
func (c Checkpoint) Load(state any) error {
	if c == "" {
		return nil
	}
	text, err := os.ReadFile(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	if err := json.Unmarshal(text, state); err != nil {
		return fmt.Errorf("read the state in %s: %w (remove the file to start over)", c, err)
	}
	return nil
}

// Save replaces the file atomically: a crash leaves the old state or the new.
func (c Checkpoint) Save(state any) error {
	if c == "" {
		return nil
	}
	next := string(c) + ".next"
	text, err := json.Marshal(state)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(next), 0o755)
	}
	if err == nil {
		err = os.WriteFile(next, text, 0o600)
	}
	if err == nil {
		err = os.Rename(next, string(c))
	}
	if err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	return nil
}

// Remove removes the file once the command is done.
func (c Checkpoint) Remove() error {
	if c == "" {
		return nil
	}
	if err := os.Remove(string(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the state: %w", err)
	}
	return nil
}
