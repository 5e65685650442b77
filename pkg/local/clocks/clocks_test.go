package clocks

import (
	"os"
	"testing"
	"time"
)

func TestAProcessHasAClockOfItsOwnWithinHalfOfTheDistance(t *testing.T) {
	c := Clocks{Apart: 5 * time.Minute, Seed: 7}
	var least, most time.Duration
	for pid := range 10_000 {
		offset := c.Offset(pid)
		if again := c.Offset(pid); again != offset {
			t.Fatalf("process %d: got %s and then %s, want the same", pid, offset, again)
		}
		least, most = min(least, offset), max(most, offset)
	}
	if half := c.Apart / 2; least < -half || most > half || least > -half+time.Second || most < half-time.Second {
		t.Errorf("got %s to %s, want nearly all of 5 min", least, most)
	}
	if got := (Clocks{Seed: 7}).Offset(1); got != 0 {
		t.Errorf("clocks that do not differ: got %s", got)
	}
}

func TestAProcessReadsItsClockFromTheEnvironment(t *testing.T) {
	c := Clocks{Apart: 5 * time.Minute, Seed: 7}
	t.Setenv(Variable, c.String())
	if got, want := OfProcess(), c.Offset(os.Getpid()); got != want || got == 0 {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv(Variable, "")
	if got := OfProcess(); got != 0 {
		t.Errorf("without the variable: got %s, want none", got)
	}
}
