//go:build unix

package runner

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a file until it is closed or the process ends, however that ends, or returns errInUse.
func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return err
}
