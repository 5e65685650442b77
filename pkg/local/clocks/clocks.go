// Package clocks gives processes of functions clocks that differ. Binaries that
// are built with [Tag] go by [Clocks.Offset]; those that are deployed know
// nothing of it.
package clocks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// Tag is the build tag of functions whose clocks differ.
const Tag = "clocks"

// Variable is the environment variable that tells them how far.
const Variable = "CLOCKS"

// Clocks says how far the clocks of processes are apart.
type Clocks struct {
	Apart time.Duration // at most; 0: they do not differ
	Seed  uint64
}

// Offset is how far the clock of a process is ahead: at most half of what the
// clocks are apart, or as far behind. It follows from the process's id.
func (c Clocks) Offset(pid int) time.Duration {
	if c.Apart == 0 {
		return 0
	}
	random := rand.New(rand.NewPCG(c.Seed, uint64(pid))) //nolint:gosec // clocks are to repeat
	return time.Duration(random.Int64N(int64(c.Apart)+1)) - c.Apart/2
}

// String is the value of [Variable].
func (c Clocks) String() string { return fmt.Sprintf("%d %d", c.Apart, c.Seed) }

// OfProcess is the offset of this process, by its environment.
func OfProcess() time.Duration {
	var c Clocks
	if _, err := fmt.Sscan(os.Getenv(Variable), (*int64)(&c.Apart), &c.Seed); err != nil {
		return 0
	}
	return c.Offset(os.Getpid())
}
