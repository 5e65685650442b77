//go:build !linux

package child

import (
	"os/exec"
	"syscall"
)

// Apart has no counterpart here: outside of its parent's process group, the child would not even end with that.
func Apart(*exec.Cmd) {}

// tie has no counterpart here: a killed parent leaves the child to their process group's end.
func tie(*exec.Cmd) {}

// block has no counterpart here: what ends the process group ends the child as well.
func block([]syscall.Signal) error { return nil }

// onMainThread does not matter here, where no child is tied to a thread.
func onMainThread() bool { return false }
