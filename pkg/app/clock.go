package app

import "time"

// clock is the clock of all that a function does.
func clock() time.Time { return time.Now() }
