package chaos

import (
	"cmp"
	"io"
	"time"
)

// Config says what to run. Out and Log are required, and what has no default
// here.
type Config struct {
	// Command runs the commerce command: a program and what stands before a
	// subcommand.
	Command  []string
	Env      []string // of the command, beside this process's own
	Template string   // the stack's template, in a checkout of the repository
	BinDir   string   // where the table server is installed
	DataDir  string   // keeps the service's data, for a look after the run; "" for a temporary folder

	Seed   uint64
	Events int // that the records mean, default 20,000
	// Chaos bounds the time of kills and faults, default 4 min; what has not
	// been sent by then is sent in calm. Calm bounds what comes after it until
	// everything has come to its end, default 6 min; a quiet machine needs less.
	Chaos, Calm time.Duration
	KillEvery   time.Duration // between two kills of a function's process, on average, default 200 ms
	Restarts    int           // how often the whole is killed and started again, 0 for never
	Retries     int           // at most, of an endpoint, default 2: the second comes after a minute
	// Faults are the shares of requests to the table that fail, of one life of
	// the service after the other; default 5%, 15% and 30%.
	Faults []float64

	Out io.Writer // gets the progress and the report
	Log io.Writer // gets what the service writes as warnings and errors
}

func (c Config) withDefaults() Config {
	c.Events = cmp.Or(c.Events, 20_000)
	c.Chaos = cmp.Or(c.Chaos, 4*time.Minute)
	c.Calm = cmp.Or(c.Calm, 6*time.Minute)
	c.KillEvery = cmp.Or(c.KillEvery, 200*time.Millisecond)
	c.Retries = cmp.Or(c.Retries, 2)
	if c.Faults == nil {
		c.Faults = []float64{0.05, 0.15, 0.3}
	}
	return c
}
