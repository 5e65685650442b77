package processes

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the child when the thread that started it ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// shieldFromSignals blocks SIGINT and SIGTERM on the calling thread, and so in the children that it starts: both may reach
// the whole process group, and functions go on until the caller has finished and kills them.
func shieldFromSignals() error {
	var signals unix.Sigset_t
	signals.Val[0] = 1<<(unix.SIGINT-1) | 1<<(unix.SIGTERM-1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &signals, nil); err != nil {
		return fmt.Errorf("blocking signals: %w", err)
	}
	return nil
}
