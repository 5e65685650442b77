package runner

import "testing"

func TestWhatKeepsTheMachineBusyRunsLessSideBySideThanInAWS(t *testing.T) {
	for _, c := range []struct {
		queue          string
		template, want int
	}{
		{"DeliveriesQueue", 200, 32},
		{"DeliveriesQueue", 2, 2},
		{"DeliveriesQueue", 0, 32},
		{"RecordsQueue", 50, 2},
		{"ImportsQueue", 2, 1},
		{"ImportsQueue", 0, 1},
		{"IndexJobsQueue", 10, 2},
		{"AnotherQueue", 0, 1000},
	} {
		if got := concurrency(c.queue, c.template); got != c.want {
			t.Errorf("%s with %d in the template: got %d, want %d", c.queue, c.template, got, c.want)
		}
	}
}

func TestStreamBatchesAreFewOnOneMachine(t *testing.T) {
	for _, c := range []struct{ factor, here, asProcesses int }{{1, 1, 8}, {2, 2, 16}, {10, 2, 16}} {
		if here, asProcesses := lanes(c.factor), processLanes(c.factor); here != c.here || asProcesses != c.asProcesses {
			t.Errorf("factor %d: got %d and %d lanes, want %d and %d", c.factor, here, asProcesses, c.here, c.asProcesses)
		}
	}
}
