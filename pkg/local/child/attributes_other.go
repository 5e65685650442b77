//go:build !linux

package child

import (
	"os/exec"
	"syscall"
)

// Apart does nothing here: outside of its parent's process group, the child would not end with it.
func Apart(*exec.Cmd) {}

// tie does nothing here: the child of a killed parent runs until its process group ends.
func tie(*exec.Cmd) {}

// Block does nothing here: a signal to the process group reaches the child as well.
func Block(...syscall.Signal) func() error { return func() error { return nil } }

// SkipSync does nothing here.
func SkipSync() error { return nil }
