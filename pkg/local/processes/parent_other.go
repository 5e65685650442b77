//go:build !linux

package processes

import "syscall"

// dieWithParent has no counterpart here: a killed caller leaves the child to its process group's end.
func dieWithParent() *syscall.SysProcAttr { return nil }

// shieldFromSignals has no counterpart here: what ends the process group ends the child as well.
func shieldFromSignals() error { return nil }
