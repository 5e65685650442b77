//go:build !unix

package queueserver

import (
	"fmt"
	"os"
)

// lockFile only opens the file: this system has no lock that ends with its process, and a stale one would need a person
// to remove it after each crash.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	return f, nil
}
