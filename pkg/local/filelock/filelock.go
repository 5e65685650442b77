// Package filelock keeps a second process out of a folder. The system releases a lock when the process that holds it
// ends, however it ends, so that a crash leaves nothing to clean up. Systems without flock have no such lock: there the
// file is only opened, and two processes are not kept apart.
package filelock

import (
	"errors"
	"fmt"
	"os"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Acquire opens the file, which it makes when there is none, and locks it until it is closed or the process ends. With
// ErrHeld it returns the open file as well, so that the caller can read what the holder wrote into it, and must close
// it.
func Acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = lock(file)
	switch {
	case errors.Is(err, ErrHeld):
		return file, fmt.Errorf("lock %s: %w", path, err)
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}
