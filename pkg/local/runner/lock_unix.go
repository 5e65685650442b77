//go:build unix

package runner

import (
	"errors"
	"os"
	"syscall"
)

// errLocked says that another process has the lock.
var errLocked = errors.New("locked by another process")

func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
