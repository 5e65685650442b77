//go:build unix

package workload

import (
	"errors"
	"syscall"
)

// killGroup kills a process and everything that it has started.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
