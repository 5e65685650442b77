//go:build !linux

package processes

import "syscall"

// dieWithParent has no counterpart here: a killed caller leaves the child to its process group's end.
func dieWithParent() *syscall.SysProcAttr { return nil }

// shieldFromInterrupt has no counterpart here: an interrupt from a terminal ends the child as well.
func shieldFromInterrupt() error { return nil }
