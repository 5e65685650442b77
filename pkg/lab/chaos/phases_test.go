package chaos

import (
	"slices"
	"testing"
	"time"
)

func TestTheOutageIsInTheMiddleOfTheRuns(t *testing.T) {
	for _, c := range []struct {
		name     string
		restarts int
		outage   time.Duration
		want     []time.Duration // ends of the runs
		away     int             // the run without the table, -1 for none
	}{
		{"none", 2, 0, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, -1},
		{"of three runs", 2, 90 * time.Second, []time.Duration{30 * time.Second, time.Minute, 150 * time.Second, 3 * time.Minute}, 2},
		{"of two runs", 1, time.Minute, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, 1},
		{"of one run", 0, time.Minute, []time.Duration{2 * time.Minute, 3 * time.Minute}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Chaos: 3 * time.Minute, Restarts: c.restarts, Outage: c.outage, Faults: []float64{0.05, 0.15}}
			phases := cfg.phases()
			var got []time.Duration
			for _, p := range phases {
				got = append(got, p.until)
			}
			if !slices.Equal(got, c.want) || slices.IndexFunc(phases, func(p phase) bool { return p.outage }) != c.away {
				t.Errorf("got %+v, want ends at %v, and the table away in run %d", phases, c.want, c.away)
			}
		})
	}
}
