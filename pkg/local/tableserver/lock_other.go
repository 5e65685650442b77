//go:build !unix

package tableserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockDirectory only makes the file: no table server is pinned for a system without flock.
func lockDirectory(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the data directory: %w", err)
	}
	return file, nil
}
