//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownProcessor is the processor time of this process so far.
func ownProcessor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
