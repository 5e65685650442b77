//go:build unix

// Package cputime tells benchmarks what processor time their process has taken.
package cputime

import (
	"syscall"
	"time"
)

// Used is the processor time of this process so far, without its children's.
func Used() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
