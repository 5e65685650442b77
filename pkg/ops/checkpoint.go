package ops

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
)

// Checkpoint is the path of a JSON file from which an interrupted command
// resumes. With an empty path nothing is kept.
type Checkpoint string

// Fingerprint identifies a command by all that its result depends on, so that
// no other command resumes from its checkpoint.
func Fingerprint(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendln(nil, parts...))
	return hex.EncodeToString(sum[:])
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
		return fmt.Errorf("read the position: %w", err)
	}
	if err := json.Unmarshal(text, state); err != nil {
		return fmt.Errorf("read the position in %s: %w (remove the file to start over)", c, err)
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
		return fmt.Errorf("save the position: %w", err)
	}
	return nil
}

// Remove removes the file once the command is done.
func (c Checkpoint) Remove() error {
	if c == "" {
		return nil
	}
	if err := os.Remove(string(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the position: %w", err)
	}
	return nil
}

// Position is how far a command has come that an interrupted run of the same
// command resumes from. The zero value keeps nothing.
type Position[T any] struct {
	State T

	file    Checkpoint
	command commandRun
}

type commandRun struct {
	Fingerprint string    `json:"fingerprint"`
	Started     time.Time `json:"started"`
}

type storedPosition[T any] struct {
	commandRun `json:",embed"`
	State      T `json:"state"`
}

// OpenPosition reads the position of an interrupted run of the same command that
// began after oldest. Otherwise it returns a new one with the state.
func OpenPosition[T any](file Checkpoint, fingerprint string, now, oldest time.Time, state T) (*Position[T], error) {
	p := &Position[T]{State: state, file: file, command: commandRun{fingerprint, now}}
	var stored storedPosition[T]
	if err := file.Load(&stored); err != nil {
		return nil, err
	}
	if stored.Fingerprint == fingerprint && stored.Started.After(oldest) {
		p.State, p.command = stored.State, stored.commandRun
	}
	return p, nil
}

// PositionFile is where a command keeps its position unless it is given a file.
func PositionFile(dataDir, command, fingerprint string) Checkpoint {
	return Checkpoint(filepath.Join(dataDir, command+"-"+fingerprint[:16]+".json"))
}

// Kept reports whether a later run finds the position.
func (p *Position[T]) Kept() bool { return p.file != "" }

// Save writes the state.
func (p *Position[T]) Save() error { return p.file.Save(storedPosition[T]{p.command, p.State}) }

// Remove removes the file once the command is done.
func (p *Position[T]) Remove() error { return p.file.Remove() }
