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

// shieldFromInterrupt blocks SIGINT on the calling thread, and so in the children that it starts: an interrupt from a
// terminal reaches the whole process group, and the tables must answer until the caller has finished and closes them.
func shieldFromInterrupt() error {
	var interrupt unix.Sigset_t
	interrupt.Val[0] = 1 << (unix.SIGINT - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &interrupt, nil); err != nil {
		return fmt.Errorf("blocking the interrupt signal: %w", err)
	}
	return nil
}
